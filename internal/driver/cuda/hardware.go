package cuda

import (
	"sync"
	"time"

	cu "github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/internal/ptxkernels"
)

// Hardware is the part of package cuda that a device needs: one stream, and stream-ordered memory.
// Package emulated has another implementation. It is safe for concurrent use.
type Hardware interface {
	Info() cu.Info
	// Alloc returns memory for work that is enqueued later.
	Alloc(n int64) (Memory, error)
	AllocHost(n int64) (HostMemory, error)
	// LockHost returns b, whole pages, as page-locked memory until its Close.
	LockHost(b []byte) (HostMemory, error)
	Load(text []byte) (Module, error)
	Launch(f Function, c cu.Config, args []byte) error
	// TensorMap returns the description of a tensor at an address for the copy units.
	TensorMap(t *ptxkernels.Tiles, at cu.Ptr) (cu.TensorMap, error)
	Copy(dst, src cu.Ptr, n int64) error
	CopyFromHost(dst cu.Ptr, h HostMemory, off, n int64) error
	CopyToHost(h HostMemory, off int64, src cu.Ptr, n int64) error
	Zero(dst cu.Ptr, n int64) error
	// Upload returns when src may change, and Download when dst is complete.
	Upload(dst cu.Ptr, src []byte) error
	Download(dst []byte, src cu.Ptr) error
	NewEvent(timing bool) (Event, error)
	Record(e Event) error
	// Capture records the work that record enqueues on the hardware that it gets.
	Capture(record func(hw Hardware) error) (Graph, error)
	// Synchronize waits for everything that is in the stream.
	Synchronize() error
	Elapsed(from, to Event) (time.Duration, error)
	Close() error
}

// Memory is memory of the device.
type Memory interface {
	Ptr() cu.Ptr
	Free() error
}

// HostMemory is page-locked memory of the host.
type HostMemory interface {
	Bytes() []byte
	Ptr() cu.Ptr
	// Write and Read copy to and from it. They copy large amounts with several threads.
	Write(off int64, src []byte) error
	Read(dst []byte, off int64) error
	Close() error
}

// Module is compiled code.
type Module interface {
	Function(name string) (Function, error)
	Close() error
}

// Graph is recorded work. Launch enqueues it on the stream.
type Graph interface {
	Launch() error
	Close() error
}

// Function is a kernel of a module.
type Function any

// Event is a point in the stream.
type Event interface {
	Synchronize() error
	Close() error
}

// gpu implements Hardware by a device of package cuda.
type gpu struct {
	dev    *cu.Device
	stream *cu.Stream

	mu       sync.Mutex
	recorder *cu.Stream // used only to record graphs; no work runs in it
}

func openGPU(ordinal int) (Hardware, error) {
	dev, err := cu.Open(ordinal)
	if err != nil {
		return nil, err
	}
	s, err := dev.NewStream(0)
	if err != nil {
		_ = dev.Close()
		return nil, err
	}
	return &gpu{dev: dev, stream: s}, nil
}

func (g *gpu) Info() cu.Info { return g.dev.Info() }

func (g *gpu) Alloc(n int64) (Memory, error) {
	m, err := g.stream.Alloc(n)
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (g *gpu) AllocHost(n int64) (HostMemory, error) {
	h, err := g.dev.AllocHost(n)
	if err != nil {
		return nil, err
	}
	return h, nil
}

func (g *gpu) LockHost(b []byte) (HostMemory, error) {
	h, err := g.dev.LockHost(b)
	if err != nil {
		return nil, err
	}
	return gpuPages{h, g}, nil
}

// gpuPages are locked pages.
type gpuPages struct {
	*cu.HostMemory
	g *gpu
}

// Close waits for the end of a capture, during which the driver refuses to unlock pages.
func (p gpuPages) Close() error {
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	return p.HostMemory.Close()
}

// hostOf returns the memory of package cuda.
func hostOf(h HostMemory) *cu.HostMemory {
	if p, ok := h.(gpuPages); ok {
		return p.HostMemory
	}
	return h.(*cu.HostMemory)
}

func (g *gpu) Synchronize() error { return g.stream.Synchronize() }

func (g *gpu) Load(text []byte) (Module, error) {
	m, err := g.dev.Load(text)
	if err != nil {
		return nil, err
	}
	return gpuModule{m}, nil
}

type gpuModule struct{ *cu.Module }

func (m gpuModule) Function(name string) (Function, error) { return m.Module.Function(name) }

func (g *gpu) Launch(f Function, c cu.Config, args []byte) error {
	return g.stream.Launch(f.(*cu.Function), c, args)
}

func (g *gpu) TensorMap(t *ptxkernels.Tiles, at cu.Ptr) (cu.TensorMap, error) {
	return g.dev.TensorMap(t.Tiled(at))
}

func (g *gpu) Copy(dst, src cu.Ptr, n int64) error { return g.stream.Copy(dst, src, n) }

func (g *gpu) CopyFromHost(dst cu.Ptr, h HostMemory, off, n int64) error {
	return g.stream.CopyFromHost(dst, hostOf(h), off, n)
}

func (g *gpu) CopyToHost(h HostMemory, off int64, src cu.Ptr, n int64) error {
	return g.stream.CopyToHost(hostOf(h), off, src, n)
}

func (g *gpu) Zero(dst cu.Ptr, n int64) error { return g.stream.Set8(dst, 0, n) }

func (g *gpu) Upload(dst cu.Ptr, src []byte) error   { return g.stream.Upload(dst, src) }
func (g *gpu) Download(dst []byte, src cu.Ptr) error { return g.stream.Download(dst, src) }

func (g *gpu) NewEvent(timing bool) (Event, error) {
	e, err := g.dev.NewEvent(timing)
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (g *gpu) Record(e Event) error { return g.stream.Record(e.(*cu.Event)) }

func (g *gpu) Elapsed(from, to Event) (time.Duration, error) {
	return cu.Elapsed(from.(*cu.Event), to.(*cu.Event))
}

// Capture records from a separate stream, so that other goroutines can continue to submit work to
// the device's stream and allocate memory in its order.
func (g *gpu) Capture(record func(hw Hardware) error) (Graph, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.recorder == nil {
		s, err := g.dev.NewStream(0)
		if err != nil {
			return nil, err
		}
		g.recorder = s
	}
	made, err := g.recorder.Capture(func() error { return record(&gpu{dev: g.dev, stream: g.recorder}) })
	if err != nil {
		return nil, err
	}
	return gpuGraph{made, g.stream}, nil
}

type gpuGraph struct {
	*cu.Graph
	stream *cu.Stream
}

func (g gpuGraph) Launch() error { return g.Graph.Launch(g.stream) }

func (g *gpu) Close() error { return g.dev.Close() }
