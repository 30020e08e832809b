package batch

import (
	"slices"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// sampler has the parameters of one call of GridSample.
type sampler struct {
	b      *Batch
	o      op.GridSampleOpts
	kernel *op.Operation // computes weights from distances
	reach  int           // distance from which on weights are 0
}

// tap has one element of an axis for each position of a grid, and its weight.
type tap struct{ id, weight Value }

// GridSample samples images x [n c ...] with d = 1, 2 or 3 spatial axes at the places of
// grid [n o... d], and returns [n c o...]. The last axis of grid holds the d coordinates of
// a place. The first coordinate is along the last axis of x. The borders of the image are
// at -1 and 1.
//
// Execute or Compile returns [op.ErrShape] for other shapes. A coordinate of NaN gives NaN.
func (b *Batch) GridSample(x, grid Value, opts ...op.GridSampleOpts) Value {
	const name = "grid_sample"
	in := []Value{x, grid}
	if !b.takes(name, in...) {
		return Value{}
	}
	o, err := op.OptionOf(opts)
	if err != nil {
		return b.refuse(name, in, "%w", err)
	}
	s, t, d := x.Shape(), grid.Shape(), len(x.Shape())-2
	if d < 1 || d > 3 || len(t) != d+2 || t[0] != s[0] || t[d+1] != d || slices.Contains(s, 0) {
		return b.refuse(name, in, "images %v, grid %v: expected a grid [%s] and images with elements: %w", s, t, "n ... d", device.ErrShape)
	}
	if o.Mode > op.Cubic || o.Outside > op.OutsideReflect {
		return b.refuse(name, in, "no such mode: %w", device.ErrUnsupported)
	}
	g := newSampler(b, o)
	taps := make([][]tap, d)
	for i, n := range s[2:] {
		taps[i] = g.taps(b.Squeeze(b.Slice(grid, -1, d-1-i, d-i, 1), -1), n)
	}
	order := append(append([]int{0}, span(2, d+2)...), 1)
	table := b.Reshape(b.Permute(x, order...), product(s)/s[1], s[1])
	images := b.table(op.I32, append(op.Shape{s[0]}, slices.Repeat([]int{1}, d)...), func(i int) float64 { return float64(i) })
	y := b.gridSum(table, taps, s[2:], images)
	return b.Permute(y, append([]int{0, d + 1}, span(1, d+1)...)...)
}

// gridSum returns for each position the sum of the elements at all combinations of taps, multiplied
// by their weights. Rows of table are the channels of a pixel.
func (b *Batch) gridSum(table Value, taps [][]tap, spatial []int, images Value) Value {
	var sum Value
	var visit func(axis int, at, weight Value)
	visit = func(axis int, at, weight Value) {
		if axis == len(spatial) {
			part := b.Mul(b.Gather(table, at), b.Unsqueeze(weight, -1))
			if sum.given() {
				part = b.Add(sum, part)
			}
			sum = part
			return
		}
		for _, t := range taps[axis] {
			w := t.weight
			if weight.given() {
				w = b.Mul(weight, w)
			}
			if visit(axis+1, b.Add(b.Mul(at, b.whole(spatial[axis])), t.id), w); b.err != nil {
				return
			}
		}
	}
	visit(0, images, None)
	return sum
}

func newSampler(b *Batch, o op.GridSampleOpts) *sampler {
	one, two := op.Const(1), op.Const(2)
	if o.Mode != op.Cubic {
		return &sampler{b, o, op.Unary("triangle", func(x op.Expr) op.Expr { return one.Sub(x.Abs()).Max(op.Const(0)) }), 1}
	}
	a := op.Const(-0.75)
	if o.CubicA != 0 {
		a = op.Const(float64(o.CubicA))
	}
	return &sampler{b, o, op.Unary("keys", func(x op.Expr) op.Expr {
		x = x.Abs()
		near := a.Add(two).Mul(x).Sub(a.Add(op.Const(3))).Mul(x.Square()).Add(one)
		far := x.Sub(op.Const(5)).Mul(x).Add(op.Const(8)).Mul(x).Sub(op.Const(4)).Mul(a)
		return op.Select(x.Le(one), near, op.Select(x.Lt(two), far, op.Const(0)))
	}), 2}
}

// taps returns the elements of an axis of n around positions from -1 to 1.
func (g *sampler) taps(grid Value, n int) []tap {
	b := g.b
	first, last := float32(-0.5), float32(n)-0.5
	if g.o.AlignCorners {
		first, last = 0, float32(n-1)
	}
	x := g.within(b.AddScalar(b.Scale(b.AddScalar(grid, 1), (last-first)/2), first), n, first, last)
	base, from, to := b.Floor(x), 1-g.reach, g.reach
	if g.o.Mode == op.Nearest {
		x = b.Round(x)
		base, from, to = x, 0, 0
	}
	var list []tap
	for k := from; k <= to; k++ {
		at := b.AddScalar(base, float32(k))
		weight := b.Map(g.kernel, b.Sub(at, x))
		at = g.within(at, n, first, last)
		if g.o.Outside == op.OutsideZeros {
			inside := b.And(b.GreaterEqual(at, b.Const(0)), b.Less(at, b.Const(float32(n))))
			weight = b.Where(b.Or(inside, b.IsNaN(at)), weight, b.scalar(grid.Type(), 0))
		}
		list = append(list, tap{b.Cast(b.Clip(at, 0, float32(n-1)), op.I32), weight})
	}
	return list
}

// within returns positions inside the image unchanged, and clamps or mirrors the others.
func (g *sampler) within(x Value, n int, first, last float32) Value {
	b := g.b
	switch g.o.Outside {
	case op.OutsideBorder:
		return b.Clip(x, 0, float32(n-1))
	case op.OutsideReflect:
		if first == last { // one element
			return b.Scale(x, 0)
		}
		back := b.Remainder(b.AddScalar(x, -first), b.Const(2*(last-first)))
		return b.AddScalar(b.Minimum(back, b.Sub(b.Const(2*(last-first)), back)), first)
	}
	return x
}
