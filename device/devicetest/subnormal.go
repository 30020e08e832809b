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

// vanishing is what can become of a subnormal number on the way: each of these
// operations multiplies one by less.
const vanishing = 0x1p-118

// flushes reports whether the device takes subnormal numbers for 0.
func flushes(ctx context.Context, dev *device.Device) bool {
	if dev.Info().Kind != device.WebGPU {
		return false
	}
	x := []float32{0x1p-130}
	return dev.Scale(ctx, x, x, 1.5) == nil && x[0] == 0
}

// flushed returns the results of the case on a device that takes subnormal numbers
// for 0, nil for any other.
func (c *Case) flushed(flushes bool) ([]*op.Array, error) {
	if !flushes {
		return nil, nil
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
	return want, err
}

// at returns the result of a number, nil of none.
func at(results []*op.Array, i int) *op.Array {
	if results == nil {
		return nil
	}
	return results[i]
}
