package engine

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/graph"
	"github.com/rayo-go/rayo/internal/memory"
	"github.com/rayo-go/rayo/op"
)

// Peaks are the two limits of a roofline, measured on the device.
type Peaks struct {
	Bandwidth float64 // bytes read and written per second by a large copy
	Flops     float64 // float32 operations per second in a large matrix product
}

// Peaks measures the limits of the device, once; later calls return the same results. It takes some
// tens of milliseconds on a CPU. For a device with its own memory it measures that memory, with the
// device's clock.
func (e *Engine) Peaks(ctx context.Context) (Peaks, error) {
	e.peaksMu.Lock()
	defer e.peaksMu.Unlock()
	if e.peaks != nil {
		return *e.peaks, nil
	}
	copies, products, timed := 8<<20, 1024, e.onHost
	if e.imm == nil {
		copies, products, timed = 64<<20, 4096, e.onDevice
	}
	var p Peaks
	two := op.Floats(2)
	err := grow(1<<16, copies, 4, func(n int) (time.Duration, error) {
		took, err := timed(ctx, op.Scale, &two, op.Shape{n})
		if err == nil {
			p.Bandwidth = 8 * float64(n) / took.Seconds()
		}
		return took, err
	})
	if err != nil {
		return Peaks{}, err
	}
	err = grow(128, products, 2, func(m int) (time.Duration, error) {
		took, err := timed(ctx, op.MatMul, &op.Attrs{}, op.Shape{m, m}, op.Shape{m, m})
		if err == nil {
			p.Flops = 2 * float64(m) * float64(m) * float64(m) / took.Seconds()
		}
		return took, err
	})
	if err != nil {
		return Peaks{}, err
	}
	e.peaks = &p
	return p, nil
}

// onHost returns the shortest time of a few runs of an operation over host memory. The result has
// the shape of the first operand.
func (e *Engine) onHost(ctx context.Context, o *op.Operation, a *op.Attrs, shapes ...op.Shape) (time.Duration, error) {
	n, err := shapes[0].Size()
	if err != nil {
		return 0, err
	}
	x, err := memory.Floats((len(shapes) + 1) * n)
	if err != nil {
		return 0, err
	}
	var hosts []Host
	for i := range len(shapes) + 1 {
		hosts = append(hosts, HostOf(Bytes(x[i*n:(i+1)*n]), op.F32, shapes[0]))
	}
	last := len(shapes)
	if o.Class() == op.Elementwise {
		return fastest(func() error { return e.Elementwise(ctx, o, a, x[:n], x[n:], nil, nil) })
	}
	return fastest(func() error { return e.Call(ctx, o, a, hosts[:last], hosts[last:]) })
}

// onDevice is onHost over buffers of the device, by its clock.
func (e *Engine) onDevice(ctx context.Context, o *op.Operation, a *op.Attrs, shapes ...op.Shape) (time.Duration, error) {
	g := &graph.Graph{}
	n := graph.Node{Kind: graph.Compute, Op: o, Attrs: *a, Type: op.F32, Shape: shapes[0], NIn: uint8(len(shapes))}
	var refs []Ref
	defer func() {
		for _, r := range refs {
			r.Buf.Close()
		}
	}()
	for i := range len(shapes) + 1 {
		s := shapes[i%len(shapes)]
		b, err := e.NewBuffer(op.F32, s)
		if err != nil {
			return 0, err
		}
		refs = append(refs, Ref{Buf: b})
		if i < len(shapes) {
			n.In[i] = g.Add(graph.Node{Kind: graph.Resident, Type: op.F32, Shape: s, Ref: int32(i)})
		}
	}
	store := graph.Node{Kind: graph.Store, Type: op.F32, Shape: shapes[0], Ref: int32(len(shapes)), NIn: 1}
	store.In[0] = g.Add(n)
	g.Add(store)
	p, err := e.plan(ctx, g, g)
	if err != nil {
		return 0, err
	}
	defer p.Close()
	p.silent = true
	best := time.Duration(math.MaxInt64)
	for range 5 {
		times := driver.Times{Steps: make([]driver.Span, len(p.prog.Steps))}
		start := time.Now()
		if err := p.Run(ctx, refs, nil, &times); err != nil {
			return 0, err
		}
		took := times.Total.End - times.Total.Start
		if took <= 0 {
			took = time.Since(start) // an adapter without timestamps
		}
		best = min(best, took)
	}
	return max(best, 1), nil
}

// grow calls f with sizes from first to last, each times the previous one, until a call takes 10 ms
// or more. The result of f for the largest size counts. Slow machines stop early, and sizes that do
// not fit on the device are ignored.
func grow(first, last, times int, f func(n int) (time.Duration, error)) error {
	for n := first; n <= last; n *= times {
		took, err := f(n)
		if n > first && (errors.Is(err, driver.ErrLimit) || errors.Is(err, driver.ErrOutOfMemory)) {
			break
		}
		if err != nil {
			return err
		}
		if took > 10*time.Millisecond {
			break
		}
	}
	return nil
}

// fastest returns the shortest time of a few runs.
func fastest(f func() error) (time.Duration, error) {
	best := time.Duration(math.MaxInt64)
	for range 5 {
		start := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		best = min(best, time.Since(start))
	}
	return max(best, 1), nil
}
