package webgpu

import (
	"context"
	"errors"
)

// TODO: everything below is a sketch of the API, to be implemented.

// Device is an open device. It is safe for concurrent use.
type Device struct{}

// Open opens an adapter of a host.
func Open(ctx context.Context, h Host, index int) (*Device, error) { return nil, errors.New("TODO") }

// Adapter says what the device is and what it can do.
func (d *Device) Adapter() *Adapter { return nil }

// Buffer is memory of a device.
type Buffer struct{}

// NewBuffer returns memory, rounded up to a multiple of four bytes (0 bytes are
// 4), that holds anything. The error wraps ErrLimit or ErrOutOfMemory.
func (d *Device) NewBuffer(bytes int64, u Usage) (*Buffer, error) { return nil, nil }

// Bytes returns the size that was asked for.
func (b *Buffer) Bytes() int64 { return 0 }

// Free gives the memory back. Submissions that use it complete all the same.
func (b *Buffer) Free() {}

// Pipeline is a compiled kernel. Equal shaders have one, however often they are compiled.
type Pipeline struct{}

// Compile compiles a shader, or finds it compiled.
func (d *Device) Compile(ctx context.Context, s *Shader) (*Pipeline, error) { return nil, nil }

// Free ends the use of the pipeline.
func (p *Pipeline) Free() {}

// Range is a part of a buffer.
type Range struct {
	Buffer     *Buffer
	Off, Bytes int64
}

// Group is buffers bound to a pipeline.
type Group struct{}

// Bind binds ranges to the bindings of a pipeline. Bytes are rounded up to a multiple of 4
// (0 bytes are 4). A buffer that is written is bound once, in one range.
func (d *Device) Bind(p *Pipeline, r []Range) (*Group, error) { return nil, nil }

// Free ends the use of the group.
func (g *Group) Free() {}

// Command is one command of a submission: a dispatch if Group is set, a copy if Src is, else a clear.
type Command struct {
	Group    *Group
	Grid     [3]uint32
	Src, Dst *Buffer
	From, To int64
	Bytes    int64
	Stamp    bool // note the time after it
}

// Transfer is bytes that go from the host to a buffer, or come from there.
type Transfer struct {
	Host   []byte
	Buffer *Buffer
	Off    int64 // a multiple of 4
}

// Submission is a round trip: operands to the device, commands, results back.
type Submission struct {
	Uploads   []Transfer
	Commands  []Command
	Downloads []Transfer
	// Stamps, if not nil, gets the time after each command with Stamp set, and in
	// front the time before the first: nanoseconds of the device's clock.
	Stamps *[]uint64
}

// Fence is the completion of a submission.
type Fence struct{}

// Submit starts a submission. It takes Uploads before it returns (what they refer
// to is free then). The slices of Downloads belong to it until the fence is done.
// With wait set the caller waits at once, and nobody else will.
func (d *Device) Submit(ctx context.Context, s *Submission, complete func(error)) (*Fence, error) {
	return nil, nil
}

// Done is closed when the results are in place.
func (f *Fence) Done() <-chan struct{} { return nil }

// Wait waits for the fence or for ctx.
func (f *Fence) Wait(ctx context.Context) error { return nil }

// Lost returns a channel that is closed when the device has stopped working.
func (d *Device) Lost() <-chan struct{} { return nil }

// Close waits for what is under way and frees everything.
func (d *Device) Close() error { return nil }
