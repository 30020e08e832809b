// Package driver is the interface between planning and a device. A driver allocates memory,
// prepares programs for execution, submits them and waits for them. It does no planning, and relies
// on the checks of the engine. The CPU, CUDA and WebGPU drivers implement it.
//
// How it maps:
//
//	            CPU                      CUDA                          WebGPU
//	Prepare     look kernels up,         generate PTX, load modules,   generate WGSL, create pipelines,
//	            reserve scratch          capture a graph               bind groups, staging buffers
//	Submit      run, or queue a          async copies from a pinned    write buffers, one command buffer
//	            goroutine                ring, launch on one stream,   with copies to staging, one submit
//	                                     async copies back, an event
//	Fence.Wait  wait for the goroutine   wait for the event            map the staging buffers
//	Host        used in place            staged through pinned memory  written and read through staging
//	operands
package driver

import (
	"context"
	"time"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
)

// Kind is a kind of device.
type Kind uint8

// The kinds, from the one that is tried last to the one tried first, and Wasm, which is opened
// only by its name.
const (
	CPU Kind = iota + 1
	WebGPU
	CUDA
	Wasm
)

// Kinds returns every kind in the order in which Open tries them.
func Kinds() []Kind { return []Kind{CUDA, WebGPU, CPU, Wasm} }

// String returns cpu, webgpu, cuda or wasm.
func (k Kind) String() string {
	switch k {
	case CPU:
		return "cpu"
	case WebGPU:
		return "webgpu"
	case CUDA:
		return "cuda"
	case Wasm:
		return "wasm"
	}
	return "no device"
}

// Info describes a device.
type Info struct {
	Kind   Kind
	Index  int    // among the devices of its kind
	Name   string // as the vendor names it
	Detail string // instruction set, driver version, API
	// Identity changes when anything changes that measurements depend on:
	// model, driver, threads, rayo's kernels. Measurements are stored under it.
	Identity string
	Memory   int64 // bytes that it can hold, 0 if not known
	Threads  int   // CPU threads that it uses; 0 for a GPU
}

// String returns the text that RAYO_DEVICE takes: kind:index.
func (i Info) String() string {
	return i.Kind.String() + ":" + itoa(i.Index)
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}

// Limits are the sizes beyond which a device cannot go.
type Limits struct {
	MaxBuffer   int64 // bytes of one buffer, and of all temporaries of a program
	MaxBinding  int64 // bytes of one slot; 0 for no other bound than MaxBuffer
	MaxBindings int   // slots that one step uses, results included; 0 for no bound
	MaxRank     int   // extents of a shape
	// OffsetAlign divides the offsets of slots in the arena, which are
	// multiples of 256 anyway.
	OffsetAlign int64
	// SeparateBindings means that a step must not bind a buffer both for reading and for writing,
	// as in WebGPU. The planner then divides the arena into separate buffers, Program.Cuts, so that
	// a step's operands and results are in different buffers, and it copies an operand that is in
	// the same device memory as a result. Only a slot that a step both reads and writes is one
	// binding.
	SeparateBindings bool
}

// Memory is a range of device memory that a driver handed out.
type Memory interface {
	// Bytes returns the size that was asked for.
	Bytes() int64
	// Free returns the memory. It may be called once, after every submission
	// that uses the memory has completed.
	Free()
}

// Device is one open device. All methods are safe for concurrent use.
type Device interface {
	Info() Info
	Limits() Limits

	// Fuses reports whether the device runs an elementwise program inside a step of operation o at
	// that place. If not, the planner makes a separate step.
	Fuses(o *op.Operation, at Place) bool

	// Alloc returns bytes of device memory, not cleared, or ErrOutOfMemory.
	Alloc(bytes int64) (Memory, error)

	// Prepare makes p executable: finds or compiles its kernels and reserves
	// its temporary memory. It may be slow. ErrUnsupported names a step that
	// the device cannot run.
	Prepare(ctx context.Context, p *Program) (Executable, error)

	// Close frees everything. The engine has closed every Executable, freed
	// all memory and waited for every fence before.
	Close() error
}

// Strided is implemented by devices that read strided operands of operations; other devices read
// only strided operands of elementwise programs. Reads reports whether the device reads operand at
// of operation o, of shape s, in the given layout.
type Strided interface {
	Reads(o *op.Operation, at int, s op.Shape, l *op.Layout) bool
	// Writes reports whether the device puts the result of o, of shape s and type
	// t, where a layout says.
	Writes(o *op.Operation, s op.Shape, t op.DType, l *op.Layout) bool
}

// Place is a place in a step where an elementwise program can run.
type Place uint8

const (
	// Prologue: on the elements of an operand when they are read.
	Prologue Place = iota
	// Epilogue: on the elements of the result before they are written.
	Epilogue
)

// Executable is a prepared program. It is safe for concurrent use: where its
// temporary memory serves one submission at a time, it keeps several or makes
// the others wait.
type Executable interface {
	// Submit starts the program over the given external slots and returns a fence that is done when
	// the results are in place. One submission copies host operands to the device, computes, and
	// copies results back. The caller must not use ext or the memory that it refers to until the
	// fence is done.
	//
	// Submissions to one device that share device memory take effect in the
	// order of their Submit calls.
	//
	// If s.Wait is set the caller is going to wait at once: a CPU runs the
	// program in the caller's goroutine and returns a nil fence.
	Submit(ctx context.Context, s *Submission) (Fence, error)
	// Close waits until no submission uses the program's resources and frees
	// them. A Submit that begins later, or meets Close, is ErrClosed or runs to
	// its end.
	Close()
}

// Submission is one run of a program.
type Submission struct {
	Ext   []Binding // for Program.Slots, by Slot.Ext
	Wait  bool      // the caller waits at once
	Times *Times    // if not nil, filled with device clocks by the time the fence is done
	// Complete, if not nil, is called once when a submission without Wait has
	// completed or failed, just before its fence is done. It does not block.
	// It is not called if Submit returned an error or if Wait is set.
	Complete func(error)
}

// Binding is the binding of an external slot in one submission: host memory or device memory.
type Binding struct {
	Host []byte // host memory, or nil
	Mem  Memory // device memory
	Off  int64  // offset into Mem in bytes, a multiple of 4
}

// Fence is the completion of a submission.
type Fence interface {
	// Done is closed when the submission has completed or failed.
	Done() <-chan struct{}
	// Wait waits for completion or for ctx, and returns the error of the
	// submission or of ctx. On an error of ctx the submission still runs.
	Wait(ctx context.Context) error
}

// Times are device clocks of one submission. Steps has a place for each step;
// both times count from the start of the submission.
type Times struct {
	Steps []Span
	Total Span
}

// Span is a start and an end.
type Span struct{ Start, End time.Duration }

// Compiler is implemented by devices that can check whether they can run a kernel before it is
// launched. The result is kept for Prepare.
type Compiler interface {
	Compile(ctx context.Context, p *ir.Program) error
}

// LossNotifier is implemented by devices that can be lost at any time. Lost returns a channel that
// is closed when the device is lost. Calls of a lost device return ErrDeviceLost, its fences end
// with it, and Close still frees its resources.
type LossNotifier interface {
	Lost() <-chan struct{}
}

// SubmitCounter is implemented by devices that count their submissions to the system's driver.
// Submits returns the count: one for most submissions, more for submissions that compute on the
// host in between or have large transfers.
type SubmitCounter interface {
	Submits() int64
}

// Peer is implemented by devices that can copy directly from the memory of another device. CopyFrom
// copies the first n bytes of src, which is memory of from, to dst: after the earlier submissions
// to either device, and before later ones. It returns when the copy is complete, or ErrUnsupported
// if the two devices cannot copy directly.
type Peer interface {
	CopyFrom(ctx context.Context, dst Memory, from Device, src Memory, n int64) error
}

// PageLocker is implemented by devices that copy faster from and to page-locked memory of the host.
type PageLocker interface {
	// LockPages locks the whole pages of b and keeps b from being freed until unlock is called.
	// unlock waits for copies and does nothing when it is called again. The error is ErrOverlap if some
	// of the pages are locked already.
	LockPages(b []byte) (unlock func() error, err error)
}

// Tunable is implemented by devices that run portable kernels.
type Tunable interface {
	// Target returns the features of the device.
	Target() portable.Target
	// Variants returns the names of the kernels from which the device can choose for r, in the order of its
	// preference, or none if the device always takes the same kernel.
	Variants(r *portable.Request) ([]string, error)
	// Tune makes the device prefer a variant for requests with a key, in programs that are prepared
	// from now on.
	Tune(key, variant string)
	// Keep stores the preference for a key for later processes.
	Keep(key string) error
}

// Immediate is implemented by devices on which one operation over host memory costs less than
// preparing a program: the CPU. The caller has checked shapes and types. The methods return when
// the results are in place, and keep no references.
type Immediate interface {
	// Elementwise computes o over float32: dst of as many of x, y and z as o takes, all of one length.
	Elementwise(ctx context.Context, o *op.Operation, a *op.Attrs, dst, x, y, z []float32) error
	// Call computes an operation of another class.
	Call(ctx context.Context, o *op.Operation, a *op.Attrs, in, out []Host) error
}

// Host is an array in host memory: an operand or result of one operation. The zero Host is an
// absent optional operand.
//
// It stores its extents by value, so that calls of an operation do not allocate.
type Host struct {
	Data []byte
	Type op.DType
	rank int
	dims [op.MaxRank]int
}

// HostOf returns the array of type t and shape s in data.
func HostOf(data []byte, t op.DType, s op.Shape) Host {
	h := Host{}
	h.Set(data, t, s)
	return h
}

// Set makes h the array of type t and shape s in data.
func (h *Host) Set(data []byte, t op.DType, s op.Shape) {
	h.Data, h.Type = data, t
	h.Reshape(s)
}

// Shape returns the extents; the slice aliases h.
func (h *Host) Shape() op.Shape { return h.dims[:h.rank:h.rank] }

// Reshape changes the extents; there must be at most op.MaxRank.
func (h *Host) Reshape(s op.Shape) { h.rank = copy(h.dims[:], s) }
