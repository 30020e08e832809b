package webgpu

import (
	"context"
	"errors"
)

// TODO: the signatures are final, the bodies are coming.

var errTODO = errors.New("TODO")

// Device is an open device. It is safe for concurrent use.
type Device struct{}

// Open opens an adapter of a host. The error wraps [ErrNoAdapter] where there is
// none, and says why.
func Open(ctx context.Context, h Host, index int) (*Device, error) { return nil, errTODO }

// Adapter says what the device is and what it can do.
func (d *Device) Adapter() *Adapter { return nil }

// Buffer is memory of a device.
type Buffer struct{}

// NewBuffer returns memory for Storage or Uniform, which holds anything. Any
// number of bytes that is not negative will do. The error wraps [ErrLimit] or
// [ErrOutOfMemory].
func (d *Device) NewBuffer(bytes int64, u Usage) (*Buffer, error) { return nil, errTODO }

// Bytes returns the size that was asked for.
func (b *Buffer) Bytes() int64 { return 0 }

// Free gives the memory back. Groups and submissions that use it keep it until
// they are done; nothing else may use it any more.
func (b *Buffer) Free() {}

// Pipeline is a compiled kernel. Equal shaders have one, however often they are
// compiled.
type Pipeline struct{}

// Compile compiles a shader, or finds it compiled. A mistake in the text is a
// [*CompileError]; too large a workgroup, or too much workgroup memory, wraps
// [ErrLimit].
func (d *Device) Compile(ctx context.Context, s *Shader) (*Pipeline, error) { return nil, errTODO }

// Free ends the use of the pipeline by the caller of Compile.
func (p *Pipeline) Free() {}

// Range is a part of a buffer.
type Range struct {
	Buffer     *Buffer
	Off, Bytes int64
}

// Group is buffers bound to a pipeline.
type Group struct{}

// Bind binds ranges to the bindings of a pipeline, in order. Off is a multiple of
// Limits.StorageAlign, or UniformAlign; Bytes are rounded up to a multiple of 4 (0
// bytes are 4), for which every buffer has room at its end. A buffer that the
// kernel writes is bound once.
//
// Bind is quick for what was bound like that not long ago.
func (d *Device) Bind(p *Pipeline, r []Range) (*Group, error) { return nil, errTODO }

// Free ends the use of the group. Submissions that use it complete all the same.
func (g *Group) Free() {}

// Command is one command of a submission: a dispatch if Group is set, a copy if
// Src is, else a clear of Dst, or nothing at all.
type Command struct {
	Group    *Group
	Grid     [3]uint32 // workgroups; nothing happens where one of them is 0
	Src, Dst *Buffer
	From, To int64 // multiples of 4
	Bytes    int64 // a multiple of 4, or up to the end of one of the buffers
	Stamp    bool  // note the time after it
}

// Transfer is bytes that go from the host to a buffer, or come from there.
type Transfer struct {
	Host   []byte
	Buffer *Buffer
	Off    int64 // a multiple of 4
}

// Submission is a round trip: operands to the device, commands one after the
// other, results back.
type Submission struct {
	Uploads   []Transfer
	Commands  []Command
	Downloads []Transfer
	// Stamps, if not nil, gets the time before the first command and the time
	// after each command with Stamp set: nanoseconds of the device's clock. It
	// becomes empty where the adapter has no Clocks.
	Stamps *[]uint64
}

// Fence is the completion of a submission.
type Fence struct{}

// Submit starts a submission. The host memory of Uploads is free again when it
// returns; that of Downloads belongs to the submission until the fence is done.
// The rest of s is the caller's again, buffers and groups may be freed.
// Submissions take effect in the order in which Submit is called by one
// goroutine, or by several that see to an order.
//
// If complete is not nil it is called once, just before the fence is done, but
// not if Submit returns an error. It must not block.
func (d *Device) Submit(ctx context.Context, s *Submission, complete func(error)) (*Fence, error) {
	return nil, errTODO
}

// Run is Submit and Wait, by the shortest way. When ctx ends it returns at once,
// and nothing touches the memory of Downloads any more; the commands still run.
func (d *Device) Run(ctx context.Context, s *Submission) error { return errTODO }

// Done is closed when the results are in place, or the submission has failed.
func (f *Fence) Done() <-chan struct{} { return nil }

// Wait waits for the fence or for ctx.
func (f *Fence) Wait(ctx context.Context) error { return errTODO }

// Lost returns a channel that is closed when the device has stopped working.
func (d *Device) Lost() <-chan struct{} { return nil }

// Stats counts what a device has done.
type Stats struct {
	Submits     uint64 // submissions to the host: one for a round trip whose operands fit a chunk
	Dispatches  uint64
	Compiled    uint64 // pipelines
	Uploaded    uint64 // bytes
	Downloaded  uint64
	Buffers     int64 // in use, those that are kept for later not among them
	BufferBytes int64
	IdleBytes   int64 // memory that is kept for later, staging among it
}

// Stats returns the counts.
func (d *Device) Stats() Stats { return Stats{} }

// Close frees everything. It waits for what is under way, but not for ever: a
// device that does not answer within some seconds is lost and let go. Submissions
// that begin meanwhile end with [ErrClosed].
func (d *Device) Close() error { return errTODO }
