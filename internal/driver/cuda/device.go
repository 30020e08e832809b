// Package cuda runs programs on NVIDIA's GPUs, through package cuda. Each step is one or more
// launches of kernels that package ptxgen lowers to PTX. A submission is work in one stream.
//
// The path of a call: Prepare converts a [driver.Program] to a list of steps (prepare.go). For an
// operation with its epilogue, or an elementwise program, the steps are launches of native kernels
// of package ptxkernels (native.go), or of the portable library if there are none. The other steps
// are kernels of the user, whose indices are checked, and operations without kernels, which the
// host computes by their reference. Each text is compiled once (code.go). A submission holds a
// [driver.FIFOLock] while it enqueues copies and launches on the stream, and waits without it
// (submit.go). Transfers from and to the host use locked memory (staging.go).
package cuda

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	cu "github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/internal/ptxgen"
	"github.com/rayo-go/rayo/internal/ptxkernels"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// kernelVersion is part of a device's identity. Raise it when the speed of kernels changes, so that
// variants are measured again.
const kernelVersion = "3"

// gpuDevice is an open GPU.
type gpuDevice struct {
	hw       Hardware
	info     driver.Info
	target   ptx.Target
	kernels  ptxkernels.Device
	overlap  bool // a launch may begin before the previous one has ended
	order    driver.FIFOLock
	cache    kernelCache
	stage    staging
	pages    lockedPages
	variants driver.Variants

	graphBytes atomic.Int64 // bytes of memory that graphs keep

	runsMu sync.Mutex
	runs   []*run // unused runs
	closed atomic.Bool

	lost  chan struct{} // closed when the device has failed
	alive sync.Once     // closes lost once
}

// Substitute, if not nil, replaces Open. Tests set it before they open a device, to use the
// emulator instead of GPUs.
var Substitute func(ordinal int) (driver.Device, error)

// Open opens a GPU by its ordinal, counted from 0.
//
// The error wraps [driver.ErrNoDevice] if there is no driver, if the driver is too old, or if the
// GPU does not exist, and gives the reason.
func Open(ordinal int) (driver.Device, error) {
	if f := Substitute; f != nil {
		return f(ordinal)
	}
	hw, err := openGPU(ordinal)
	if err != nil {
		if !errors.Is(err, cu.ErrDeviceLost) && !errors.Is(err, cu.ErrOutOfMemory) {
			return nil, fmt.Errorf("%w: %w", err, driver.ErrNoDevice)
		}
		return nil, translateError(err)
	}
	return New(hw)
}

// New returns a device for the hardware. Closing the device closes the hardware.
func New(hw Hardware) (driver.Device, error) {
	i := hw.Info()
	target, err := targetOf(i.Capability)
	if err != nil {
		_ = hw.Close()
		return nil, fmt.Errorf("%s: %w", i.Name, err)
	}
	d := &gpuDevice{hw: hw, target: target, kernels: nativeDevice(target, i), lost: make(chan struct{}), overlap: ptxgen.Overlaps(target) && i.Driver >= 12030}
	d.info = driver.Info{
		Kind:     driver.CUDA,
		Index:    i.Ordinal,
		Name:     i.Name,
		Detail:   fmt.Sprintf("capability %v, driver for CUDA %v, %d multiprocessors", i.Capability, i.Driver, i.Multiprocessors),
		Identity: fmt.Sprintf("cuda/%s/%v/%v/kernels=%s", i.Name, target, i.Driver, kernelVersion),
		Memory:   i.Memory,
	}
	d.cache.d, d.stage.d = d, d
	return d, nil
}

// targetOf returns the target for which kernels are built.
func targetOf(c cu.Capability) (ptx.Target, error) {
	n := ptx.Target(100*c.Major + 10*c.Minor)
	if n == ptx.SM90 {
		return ptx.SM90a, nil
	}
	var best ptx.Target
	for _, t := range ptx.Targets() {
		if t <= n && t%10 == 0 {
			best = max(best, t)
		}
	}
	if best == 0 {
		return 0, fmt.Errorf("the GPU has compute capability %v; at least 7.0 is required: %w", c, driver.ErrNoDevice)
	}
	return best, nil
}

// Lost implements [driver.LossNotifier]. A GPU reports that it has failed only when it is used.
func (d *gpuDevice) Lost() <-chan struct{} { return d.lost }

// translateError translates an error as the function translateError does, and records the loss of
// the device.
func (d *gpuDevice) translateError(err error) error {
	err = translateError(err)
	if errors.Is(err, driver.ErrDeviceLost) {
		d.alive.Do(func() { close(d.lost) })
	}
	return err
}

func (d *gpuDevice) Info() driver.Info { return d.info }

// maxBinding limits the bytes of an array: kernels count elements in 32 bits, and an element has at
// least two bytes.
const maxBinding = 8 << 30

// Reads implements [driver.Strided].
func (d *gpuDevice) Reads(o *op.Operation, at int, s op.Shape, l *op.Layout) bool {
	return portable.Reads(o, at, s, l)
}

// Writes implements [driver.Strided].
func (d *gpuDevice) Writes(o *op.Operation, s op.Shape, _ op.DType, l *op.Layout) bool {
	return portable.Writes(o, s, l)
}

func (d *gpuDevice) Limits() driver.Limits {
	return driver.Limits{MaxBuffer: max(d.info.Memory, 1<<20), MaxBinding: maxBinding, MaxBindings: libraryTarget.Buffers, MaxRank: op.MaxRank}
}

// libraryTarget has the features of every supported GPU.
var libraryTarget = portable.Target{Lanes: 1024, Shared: 48 << 10, Buffers: 60, Groups: 65535, Subgroups: true, Votes: true, F16: true, MapLanes: 256, MapMuch: 1, MapBranches: true}

// Fuses implements [driver.Device]. Kernels can apply an elementwise program to their result before
// they write it.
func (d *gpuDevice) Fuses(o *op.Operation, at driver.Place) bool {
	return at == driver.Epilogue && o.Results() == 1 && o.Class() != op.Elementwise && (portable.Has(o) || ptxkernels.Has(o))
}

// array is device memory.
type array struct {
	m     Memory
	ptr   cu.Ptr
	bytes int64
}

func (d *gpuDevice) Alloc(bytes int64) (driver.Memory, error) {
	if d.closed.Load() {
		return nil, driver.ErrClosed
	}
	if bytes < 0 {
		return nil, fmt.Errorf("cannot allocate %d bytes: %w", bytes, driver.ErrOutOfMemory)
	}
	m, err := d.hw.Alloc(max(bytes, 1))
	if err != nil {
		return nil, d.translateError(err)
	}
	return &array{m, m.Ptr(), bytes}, nil
}

func (a *array) Bytes() int64 { return a.bytes }

func (a *array) Free() {
	_ = a.m.Free()
	a.ptr = 0
}

// Close frees the device. The engine has waited for all work.
func (d *gpuDevice) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	d.order.Wait()
	d.freeRuns()
	d.stage.free()
	d.pages.free()
	d.cache.free()
	return translateError(d.hw.Close())
}

// translateError wraps an error of package cuda in the error of package driver for the same cause.
func translateError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, cu.ErrDeviceLost):
		return fmt.Errorf("%w: %w", driver.ErrDeviceLost, err)
	case errors.Is(err, cu.ErrOutOfMemory):
		return fmt.Errorf("%w: %w", driver.ErrOutOfMemory, err)
	case errors.Is(err, cu.ErrLocked):
		return fmt.Errorf("%w: %w", driver.ErrOverlap, err)
	case errors.Is(err, cu.ErrClosed):
		return fmt.Errorf("%w: %w", driver.ErrClosed, err)
	case errors.Is(err, cu.ErrBadImage), errors.Is(err, cu.ErrUnsupported), errors.Is(err, cu.ErrInvalid):
		return fmt.Errorf("%w: %w", driver.ErrUnsupported, err)
	}
	return err
}
