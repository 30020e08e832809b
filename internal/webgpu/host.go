// Package webgpu is the part of WebGPU that rayo uses, over any library that implements it: adapters,
// buffers, compute pipelines, and submissions, which copy operands to the device, run kernels and copy
// results back in one round trip.
//
// A [Host] is a thin wrapper of such a library, without checks. Drivers use a [Device]: it rejects
// calls that would make a library abort, hang or compute a wrong result, and it caches staging
// memory, pipelines and groups. Therefore no call of a Device can end the process.
package webgpu

import (
	"context"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/incomparable"
	"github.com/rayo-go/rayo/wgsl"
)

// Host is a library that implements WebGPU. Its methods are safe for concurrent
// use.
type Host interface {
	// Name returns the name and version of the library.
	Name() string
	// Adapters lists the adapters in the order of the library, including software adapters. If there
	// are none, the error gives the reason.
	Adapters(ctx context.Context) ([]Adapter, error)
	// Open opens the adapter at this place in the list, with its highest limits and all features that
	// rayo uses.
	Open(ctx context.Context, index int) (HostDevice, error)
}

// HostDevice is an open device of a host. Its methods are safe for concurrent use and do not wait.
// They do not check arguments, because [Device] has checked them.
type HostDevice interface {
	// Adapter describes the opened adapter.
	Adapter() *Adapter

	// NewBuffer returns size bytes with undefined contents. size is a positive multiple of 4.
	NewBuffer(size int64, u Usage) (HostBuffer, error)
	// NewPipeline compiles a shader. The error is a *CompileError for a mistake
	// in the text.
	NewPipeline(s *Shader) (HostPipeline, error)
	// NewGroup binds ranges to the bindings of the pipeline, in their order.
	NewGroup(p HostPipeline, r []HostRange) (HostGroup, error)

	// Submit runs commands, one after the other, and then maps remap, of buffers of Readback at least the
	// bytes that the commands write. Tickets increase with each submission, and are never 0.
	Submit(c []HostCommand, remap []HostBuffer) (serial uint64, err error)
	// Poll returns the number of the last completed submission, whose buffers are mapped.
	Poll() (done uint64, err error)
	// Lost returns a channel that is closed when the device has stopped working.
	Lost() <-chan struct{}
	// Close frees the remaining resources. No work may be running.
	Close()
}

// Repeater is a HostDevice that encodes commands again for each submission, and can do so in advance.
type Repeater interface {
	// Again is called while the submission with this serial runs, by the goroutine that is about to
	// wait for it. The objects that the submission uses exist until Again returns. The host may
	// prepare to submit the same commands again.
	Again(serial uint64)
}

// Remote is a HostDevice in a page. Go cannot address its memory, so bytes are copied by Write and
// Read. It calls a function when submissions are complete: polling would keep the event loop of the page
// from running, and the loop completes them. Callers do not use Poll, HostBuffer.Mapped and
// Mappable, and make no buffers of kind Upload.
type Remote interface {
	// Write copies bytes, a positive multiple of 4, to a buffer of Storage or Uniform, between the
	// submissions before and after the call. The caller may reuse the bytes when it returns.
	Write(b HostBuffer, off int64, from []byte) error
	// Read copies bytes from a buffer of Readback that is mapped.
	Read(b HostBuffer, off int64, to []byte) error
	// Notify sets f, which is called when submissions are complete and their buffers are mapped: all
	// submissions up to serial. If err is not nil, the submission with this serial has failed. f must
	// not block.
	Notify(f func(serial uint64, err error))
}

// HostBuffer is memory of a device.
type HostBuffer interface {
	// Mapped returns the bytes of a buffer that is mapped. They are not valid
	// after Unmap.
	Mapped() []byte
	// Unmap gives the bytes to the device.
	Unmap()
	// Release frees the buffer, which must not be in use.
	Release()
}

// HostPipeline is a compiled kernel.
type HostPipeline interface{ Release() }

// HostGroup is buffers bound to a pipeline.
type HostGroup interface{ Release() }

// HostRange is a part of a buffer: not empty, from a multiple of the alignment of
// its kind, in multiples of four bytes.
type HostRange struct {
	Buffer     HostBuffer
	Off, Bytes int64
}

// HostCommand is one command of a submission.
type HostCommand struct {
	_ incomparable.Type

	Do       CommandKind
	Pipeline HostPipeline // Dispatch
	Group    HostGroup
	Grid     [3]uint32
	Src, Dst HostBuffer // Copy; Clear has only Dst
	From, To int64      // offsets, multiples of 4
	Bytes    int64      // a multiple of 4; for Stamps the number of marks
	Mark     uint32     // Stamp: its number, from 0
}

// CommandKind is the kind of a command.
type CommandKind uint8

// The commands. Each command sees the writes of earlier commands.
const (
	Dispatch CommandKind = iota
	Copy                 // bytes from one buffer to another
	Clear                // zeros
	Stamp                // record the time, if the device has clocks
	Stamps               // write the first Bytes recorded times of this submission to Dst at To, in units of Tick, 8 bytes each
)

// Usage is the usage of a buffer.
type Usage uint8

// The usages. Kernels read and write Storage, and copies have it as source and destination. Uniform
// holds blocks of parameters, and is a destination of copies. Upload is mapped at the beginning, the
// host writes it, and it is a source of copies. Readback is a destination of copies, and the host
// reads it when it is mapped.
const (
	Storage Usage = iota
	Uniform
	Upload
	Readback
	// Input and Output are mapped Storage, if Adapter.Mappable is set: kernels read Input, which the
	// host writes, and the host reads Output, which kernels write. Input is mapped at the beginning,
	// like Upload.
	Input
	Output
)

// Adapter describes a device that can be opened.
type Adapter struct {
	_ incomparable.Type

	Name   string // of the device
	Driver string // name and version of its driver
	API    string // Vulkan, Metal, D3D12, GL, browser
	Type   AdapterType
	Vendor uint32 // PCI numbers, 0 where they are not known
	Device uint32
	// Target describes the compiler for which texts are printed: its features are the features of
	// the device.
	Target wgsl.Target
	// Clocks means that Stamp works, and Tick is the number of nanoseconds of a unit of the times
	// that Stamps writes.
	Clocks bool
	Tick   float64
	// Mappable says that there are buffers for Input and Output.
	Mappable bool
	Limits
}

// The numbers of vendors for which rayo chooses other code.
const (
	NVIDIA = 0x10de
	Apple  = 0x106b
)

// AdapterType is the kind of processor of an adapter.
type AdapterType uint8

// The types of adapters, in the order of preference.
const (
	Discrete AdapterType = iota
	Integrated
	Virtual
	Other
	Software // software that emulates a GPU
)

// String returns the name of the type.
func (t AdapterType) String() string {
	if t <= Software {
		return [...]string{"discrete GPU", "integrated GPU", "virtual GPU", "unknown device", "software"}[t]
	}
	return fmt.Sprintf("AdapterType(%d)", uint8(t))
}

// Limits are sizes that [wgsl.Limits] does not have.
type Limits struct {
	Buffer       int64 // bytes of one buffer
	Binding      int64 // bytes of a range that a kernel reads or writes
	UniformBytes int64 // bytes of a block of parameters
	StorageAlign int64 // offsets of ranges of Storage are multiples of it
	UniformAlign int64 // offsets of ranges of Uniform are multiples of it
}

// Shader is the text of a kernel.
type Shader struct {
	Label string // for messages
	Text  string
	Entry string
	// Bindings are the buffers, in order: binding i of group 0.
	Bindings []BindingKind
	// Lanes is the size of a workgroup, and Shared the number of bytes of workgroup memory in the
	// text. They are compared with the limits, which compilers do not check.
	Lanes  [3]uint32
	Shared uint64
	// Trusted means that the text terminates and stays within its buffers: no checks are added to
	// it.
	Trusted bool
}

// BindingKind is how a shader declares a buffer.
type BindingKind uint8

// The kinds of bindings.
const (
	ReadOnly  BindingKind = iota // var<storage, read>
	ReadWrite                    // var<storage, read_write>
	Block                        // var<uniform>
)

// CompileError is a mistake in the text of a shader.
type CompileError = wgsl.CompileError
