package engine

import (
	"context"
	"math"
	"time"

	"github.com/rayo-go/rayo/internal/memory"
	"github.com/rayo-go/rayo/op"
)

// Peaks are the two limits of a roofline, measured on the device.
type Peaks struct {
	Bandwidth float64 // bytes read and written per second by a large copy
	Flops     float64 // float32 operations per second in a large matrix product
}

// Peaks measures the limits of the device, once; later calls return what the
// first found. It takes some tens of milliseconds on a CPU.
func (e *Engine) Peaks(ctx context.Context) (Peaks, error) {
	e.peaksMu.Lock()
	defer e.peaksMu.Unlock()
	if e.peaks != nil {
		return *e.peaks, nil
	}
	const n, m = 8 << 20, 1024
	x, err := memory.Floats(n)
	if err != nil {
		return Peaks{}, err
	}
	y, err := memory.Floats(n)
	if err != nil {
		return Peaks{}, err
	}
	var p Peaks
	one := op.Floats(2)
	copying, err := fastest(func() error { return e.Elementwise(ctx, op.Scale, &one, y, x, nil, nil) })
	if err != nil {
		return Peaks{}, err
	}
	p.Bandwidth = 8 * n / copying.Seconds()
	s := op.Shape{m, m}
	in := []Host{{Bytes(x[:m*m]), op.F32, s}, {Bytes(x[m*m : 2*m*m]), op.F32, s}}
	product, err := fastest(func() error {
		return e.Call(ctx, op.MatMul, &op.Attrs{}, in, []Host{{Bytes(y[:m*m]), op.F32, s}})
	})
	if err != nil {
		return Peaks{}, err
	}
	p.Flops = 2 * m * m * m / product.Seconds()
	e.peaks = &p
	return p, nil
}

// fastest returns the least time of a few runs.
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
