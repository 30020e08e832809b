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
	var p Peaks
	two := op.Floats(2)
	err := grow(1<<16, 8<<20, 4, func(n int) (time.Duration, error) {
		x, err := memory.Floats(2 * n)
		if err != nil {
			return 0, err
		}
		took, err := fastest(func() error { return e.Elementwise(ctx, op.Scale, &two, x[:n], x[n:], nil, nil) })
		p.Bandwidth = 8 * float64(n) / took.Seconds()
		return took, err
	})
	if err != nil {
		return Peaks{}, err
	}
	err = grow(128, 1024, 2, func(m int) (time.Duration, error) {
		x, err := memory.Floats(3 * m * m)
		if err != nil {
			return 0, err
		}
		array := func(i int) Host { return HostOf(Bytes(x[i*m*m:(i+1)*m*m]), op.F32, op.Shape{m, m}) }
		took, err := fastest(func() error {
			return e.Call(ctx, op.MatMul, &op.Attrs{}, []Host{array(0), array(1)}, []Host{array(2)})
		})
		p.Flops = 2 * float64(m) * float64(m) * float64(m) / took.Seconds()
		return took, err
	})
	if err != nil {
		return Peaks{}, err
	}
	e.peaks = &p
	return p, nil
}

// grow calls f with sizes from first to last, each times the one before, as
// long as one call takes less than 10 ms: the largest size counts, but slow
// machines are not kept busy for seconds.
func grow(first, last, times int, f func(n int) (time.Duration, error)) error {
	for n := first; n <= last; n *= times {
		took, err := f(n)
		if err != nil {
			return err
		}
		if took > 10*time.Millisecond {
			break
		}
	}
	return nil
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
