// Package webgpu runs programs on any GPU, through package internal/webgpu: each step is one or
// more launches of kernels printed by package wgsl, and a submission is one command buffer.
//
// From the call down: an adapter is chosen (adapter.go) and opened through the host that the build
// has (host_*.go). A [driver.Program] is prepared as a list of steps (prepare.go): the launches of
// the portable library for an operation, with its epilogue, or for an elementwise program; copies;
// a user's kernel; and operations without kernels, which the host computes by their reference
// (reference.go). If the device lacks half floats, they are widened before and narrowed after
// (halves.go), and arrays larger than the binding limit are processed in windows (window.go).
// Kernels are printed and compiled once (code.go). The kinds of memory of its arrays determine the
// bindings of a submission (layout.go), so that the commands are encoded once and submitted again
// (recording.go, submit.go).
package webgpu

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/portable"
	gpu "github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/wgsl"
)

// kernelVersion is part of a device's identity: raise it when the speed of
// kernels changes, so that stored measurements are taken again.
const kernelVersion = "5"

// device is an open GPU.
type device struct {
	gpu     *gpu.Device
	info    driver.Info
	target  wgsl.Target     // target of the printed shaders
	library portable.Target // target of the portable library
	limits  gpu.Limits

	order           driver.FIFOLock
	kernels         kernelCache
	sets            sets
	variants        driver.Variants
	approx, narrows measurement
	arrays          atomic.Uint64 // id of the last array
	closed          atomic.Bool
}

// newDevice returns a device for an open GPU. Closing the device closes the GPU. index is its index
// in the order of adapters.
func newDevice(g *gpu.Device, host string, index int) *device {
	a := g.Adapter()
	d := &device{gpu: g, target: targetOf(a), limits: a.Limits}
	l := d.target.Limits
	d.library = portable.Target{Lanes: int(l.Invocations), Shared: int(l.WorkgroupBytes), Buffers: l.Bindings, Groups: int(l.Grid),
		Subgroups: d.target.Features&wgsl.Subgroups != 0, F16: d.target.Features&wgsl.Half != 0, MapGuarded: true}
	// For other GPUs this is unknown, or has not been measured.
	d.library.Ordered = a.Vendor == gpu.NVIDIA && a.Type != gpu.Software
	d.library.Serial = a.Type == gpu.Software
	if n := d.target.SubgroupSize; n[0] == n[1] {
		d.library.Subgroup = int(n[0])
	}
	d.info = driver.Info{
		Kind:     driver.WebGPU,
		Index:    index,
		Name:     a.Name,
		Detail:   fmt.Sprintf("%v, %s through %s, %s", a.Type, a.API, host, a.Driver),
		Identity: fmt.Sprintf("webgpu/%s/%s/%s/%s/kernels=%s", host, a.API, a.Name, a.Driver, kernelVersion),
	}
	d.kernels.d, d.sets.d = d, d
	return d
}

// targetOf returns the target of the printed shaders.
func targetOf(a *gpu.Adapter) wgsl.Target {
	t := a.Target
	def := &wgsl.DefaultLimits
	for _, l := range []struct{ v, d *uint32 }{
		{&t.Limits.Invocations, &def.Invocations}, {&t.Limits.WorkgroupBytes, &def.WorkgroupBytes}, {&t.Limits.Grid, &def.Grid},
		{&t.Limits.Size[0], &def.Size[0]}, {&t.Limits.Size[1], &def.Size[1]}, {&t.Limits.Size[2], &def.Size[2]},
	} {
		if *l.v == 0 {
			*l.v = *l.d
		}
	}
	if t.Limits.Bindings == 0 {
		t.Limits.Bindings = def.Bindings
	}
	// Software adapters (Mesa, SwiftShader) compute fma as a rounded product and a rounded sum.
	t.Unfused = t.Unfused || a.Type == gpu.Software
	return t
}

func (d *device) Info() driver.Info { return d.info }

// Limits implements [driver.Device]. Arrays larger than a binding are processed in windows, so
// arrays may be as large as buffers.
func (d *device) Limits() driver.Limits {
	return driver.Limits{MaxBuffer: d.limits.Buffer, MaxBindings: d.library.Buffers, MaxRank: op.MaxRank, OffsetAlign: d.limits.StorageAlign, SeparateBindings: true}
}

// Fuses implements [driver.Device]. Kernels can apply an elementwise program to their result before
// they write it.
func (d *device) Fuses(o *op.Operation, at driver.Place) bool {
	return at == driver.Epilogue && o.Results() == 1 && o.Class() != op.Elementwise && portable.Has(o)
}

// Reads implements [driver.Strided]: it allows layouts of arrays that can be bound as a whole,
// because strided arrays are not divided.
func (d *device) Reads(o *op.Operation, at int, s op.Shape, l *op.Layout) bool {
	_, end := l.Bounds()
	if o.Class() != op.Elementwise && (operations.reads == nil || !operations.reads(o, at, s, l)) {
		return false
	}
	return int64(end)*4 <= d.limits.Binding
}

// Writes implements [driver.Strided].
func (d *device) Writes(o *op.Operation, s op.Shape, _ op.DType, l *op.Layout) bool {
	return operations.writes != nil && operations.writes(o, s, l) && int64(l.Size())*4 <= d.limits.Binding
}

// Lost implements [driver.LossNotifier].
func (d *device) Lost() <-chan struct{} { return d.gpu.Lost() }

// Submits implements [driver.SubmitCounter].
func (d *device) Submits() int64 { return int64(d.gpu.Stats().Submits) }

// array is device memory.
type array struct {
	d     *device
	b     *gpu.Buffer
	id    uint64 // unique among the arrays of the device
	bytes int64
}

func (d *device) Alloc(bytes int64) (driver.Memory, error) {
	if d.closed.Load() {
		return nil, driver.ErrClosed
	}
	if bytes < 0 {
		return nil, fmt.Errorf("cannot allocate %d bytes: %w", bytes, driver.ErrOutOfMemory)
	}
	// Round up to whole words, because copies move whole words.
	b, err := d.gpu.NewBuffer(words(bytes), gpu.Storage)
	if err != nil {
		return nil, translateError(err)
	}
	return &array{d, b, d.arrays.Add(1), bytes}, nil
}

func (a *array) Bytes() int64 { return a.bytes }

func (a *array) Free() {
	a.d.sets.forget(a.id)
	a.b.Free()
	a.id = 0
}

// words returns bytes rounded up to a multiple of four.
func words(bytes int64) int64 { return (bytes + 3) &^ 3 }

// Close frees the device. The engine has waited for everything.
func (d *device) Close() error {
	if d.closed.Swap(true) {
		return nil
	}
	d.order.Wait()
	d.sets.free()
	d.kernels.free()
	return translateError(d.gpu.Close())
}

// translateError wraps an error of package internal/webgpu in the error of package driver for the same cause.
func translateError(err error) error {
	if err == nil {
		return nil
	}
	for _, m := range []struct{ is, means error }{
		{gpu.ErrDeviceLost, driver.ErrDeviceLost}, {gpu.ErrOutOfMemory, driver.ErrOutOfMemory}, {gpu.ErrClosed, driver.ErrClosed},
		{gpu.ErrLimit, driver.ErrLimit}, {gpu.ErrNoAdapter, driver.ErrNoDevice}, {gpu.ErrUnsupported, driver.ErrUnsupported},
	} {
		if errors.Is(err, m.is) {
			return fmt.Errorf("%w: %w", m.means, err)
		}
	}
	return err
}

// alive returns an error if ctx has ended or the device is lost, otherwise nil.
func (d *device) alive(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.closed.Load() {
		return driver.ErrClosed
	}
	return nil
}
