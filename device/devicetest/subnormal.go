package devicetest

import (
	"context"
	"math"
	"slices"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/ir"
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
	// quotient is how many units in the last place WGSL lets a quotient be off by,
	// and about what it lets square roots.
	quotient = 2.5
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
	results [][]*op.Array // each may be what comes out
	slack   float64
	units   float64 // in the last place, likewise
}

// without returns the results of the case without subnormal numbers, if u asks for
// that.
func (c *Case) without(u underflow) (flushed, error) {
	f := flushed{slack: u.slack, units: c.units(u)}
	if !u.flushes {
		return f, nil
	}
	without := []func(v float64) float64{func(v float64) float64 {
		if math.Abs(v) < 0x1p-126 {
			return math.Copysign(0, v)
		}
		return v
	}}
	if f.units > 0 {
		// The reciprocal of what is beyond 2^126 is subnormal: WGSL promises nothing
		// of what is divided by that.
		without = append(without, func(v float64) float64 {
			if math.Abs(v) > 0x1p126 {
				return math.Inf(int(math.Copysign(1, v)))
			}
			return without[0](v)
		})
	}
	for _, remove := range without {
		k := *c
		k.In = append([]Tensor(nil), c.In...)
		for i := range k.In {
			x := &k.In[i]
			if x.Type != op.F32 && x.Type != op.BF16 {
				continue
			}
			x.Data = append([]float64(nil), x.Data...)
			for at, v := range x.Data {
				x.Data[at] = remove(v)
			}
		}
		want, _, err := k.Reference()
		if err != nil {
			return f, err
		}
		f.results = append(f.results, want)
	}
	return f, nil
}

// units returns by how many units in the last place results may be off besides on a
// device that makes that of subnormal numbers.
func (c *Case) units(u underflow) float64 {
	if u.slack > 0 && c.divides() {
		return quotient
	}
	return 0
}

// divides reports whether the operation is elementwise and has a quotient or a root in it.
func (c *Case) divides() bool {
	types := make([]op.DType, len(c.In))
	for i := range c.In {
		types[i] = c.In[i].Type
	}
	a := c.Attrs()
	e, err := c.Op.Expression(&a, types)
	if err != nil {
		return false
	}
	list, _ := ir.Flatten(e)
	return slices.ContainsFunc(list, func(n *ir.Node) bool {
		return n.Type == ir.F32 && (n.Code == ir.Div || n.Code == ir.Sqrt || n.Code == ir.Rsqrt || n.Code == ir.Recip)
	})
}

// allows reports whether element i of result k may be got where it should be want.
func (f *flushed) allows(o *op.Operation, k, i int, got, want, mag float64, t op.DType) bool {
	if f.slack == 0 {
		return false
	}
	return f.near(o, got, want, mag, t) || slices.ContainsFunc(f.results, func(also []*op.Array) bool {
		return f.near(o, got, also[k].Data[i], mag, t)
	})
}

// near reports whether got is want for a device of WebGPU.
func (f *flushed) near(o *op.Operation, got, want, mag float64, t op.DType) bool {
	if got == want || !t.Float() || t == op.F16 {
		return got == want
	}
	tol := o.Tolerance()
	tol.ULP = max(tol.ULP, 0.5) + f.units
	return math.Abs(got-want) < f.slack || tol.Check(want+(got-want)/reordered, want, mag, t) == nil
}
