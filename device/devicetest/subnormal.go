package devicetest

import (
	"context"
	"math"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// WebGPU lets a device take subnormal numbers for 0, in operands, in results and on
// the way between them, and some do. What they compute is then also right if it is
// what follows from operands without subnormal numbers, or less than vanishing away
// from what is right.

const (
	// vanishing is what can become of a subnormal number on the way: each of
	// these operations multiplies one by less.
	vanishing = 0x1p-118
	// rounded is two of the smallest steps: of subnormal numbers software that has
	// no fused multiplication and addition loses one more than others.
	rounded = 0x1p-148
	// reordered is what the bound of a result is multiplied by: compilers of WebGPU
	// may take sums and products in another order.
	reordered = 1.5
)

// underflow is what a device makes of subnormal numbers.
type underflow struct {
	flushes bool
	slack   float64 // what results may be off by besides
}

// underflowOf returns what dev makes of them.
func underflowOf(ctx context.Context, dev *device.Device) underflow {
	if dev.Info().Kind != device.WebGPU {
		return underflow{}
	}
	x := []float32{0x1p-130}
	if dev.Scale(ctx, x, x, 1.5) == nil && x[0] == 0 {
		return underflow{true, vanishing}
	}
	return underflow{false, rounded}
}

// flushed are the results of a case on a device that takes subnormal numbers for 0;
// the zero flushed is for one that does not.
type flushed struct {
	results []*op.Array
	slack   float64
}

// without returns the results of the case without subnormal numbers, if u asks for
// that.
func (c *Case) without(u underflow) (flushed, error) {
	if !u.flushes {
		return flushed{slack: u.slack}, nil
	}
	f := *c
	f.In = append([]Tensor(nil), c.In...)
	for i := range f.In {
		x := &f.In[i]
		if x.Type != op.F32 && x.Type != op.BF16 {
			continue
		}
		x.Data = append([]float64(nil), x.Data...)
		for k, v := range x.Data {
			if v != 0 && math.Abs(v) < 0x1p-126 {
				x.Data[k] = math.Copysign(0, v)
			}
		}
	}
	want, _, err := f.Reference()
	return flushed{want, u.slack}, err
}

// allows reports whether element i of result k may be got where it should be want.
func (f *flushed) allows(o *op.Operation, k, i int, got, want, mag float64, t op.DType) bool {
	if f.slack == 0 || t != op.F32 && t != op.BF16 {
		return false
	}
	if math.Abs(got-want) < f.slack || o.Check(want+(got-want)/reordered, want, mag, t) == nil {
		return true
	}
	if f.results == nil {
		return false
	}
	w := f.results[k].Data[i]
	return o.Check(got, w, mag, t) == nil || math.Abs(got-w) < f.slack
}
