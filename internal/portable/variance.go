//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// variances computes sums of squared distances from a centre near the mean. It also computes the
// mean of the distances, which is the difference between the mean and the centre. A partial
// consists of the centre, the sum of squares and this difference.
var variances = maker[reduceParams, reduceSpec]{name: "reduce_var", build: func(b *kernel.Builder, p *reduceParams, s reduceSpec, e *epilogue) {
	t := newLaneGroup(b, s.groupLayout)
	m := s.moments(b, p)
	if s.Split && s.Each > 0 {
		b.PreferRegisters() // for a part that stays in registers
	}
	put := [3]func(i kernel.U32, v kernel.Dynamic){}
	if s.Split {
		for k, name := range []string{"part_centres", "part_squares", "part_offs"} {
			put[k] = outputValue(b, name, op.F32).set
		}
	} else {
		put[0] = e.result(b, s.Type)
	}
	c := pieceOf(b, p, t, s.Split)
	centre, squares, off := m(c, c.units(t, &s))
	b.If(c.Is.And(t.lane.Eq(kernel.U(0))), func() {
		if s.Split {
			put[0](c.Number, kernel.Dyn(centre))
			put[1](c.Number, kernel.Dyn(squares))
			put[2](c.Number, kernel.Dyn(off))
			return
		}
		// If the squares overflow, the squared differences may overflow too. For infinite elements
		// both are NaN.
		v := squares.Sub(off.Mul(off.Mul(b.F32(&p.Count))))
		v = kernel.Select(squares.AsU32().Eq(kernel.U(infBits)).And(notFinite(off).Not()), squares, v)
		put[0](c.Number, kernel.Dyn(v.Div(b.F32(&p.Free))))
	})
}}

// moments declares the operands. It returns a function that computes the centre, the sum of squares
// and the offset of a piece, in each lane of the lane group.
func (s *reduceSpec) moments(b *kernel.Builder, p *reduceParams) func(c piece, st *stridedRange) (centre, squares, off kernel.F32) {
	if s.Pieces {
		pieces := inputMoments(b)
		return func(c piece, st *stridedRange) (centre, squares, off kernel.F32) {
			return pieces.merge(st.t, c.From, c.To, b.F32(&p.Count), b.F32(&p.Length), b.F32(&p.Tail))
		}
	}
	x := s.input(b, "x")
	return func(c piece, st *stridedRange) (centre, squares, off kernel.F32) {
		return momentsOf(st, s.Unit, x, c.end.Sub(c.From))
	}
}

// momentsOf returns the moments of a range of x with count elements. A resident row uses the mean
// of one pass as its centre; other rows use the mean of the units with which they begin.
func momentsOf(st *stridedRange, unit int, x units, count kernel.U32) (centre, squares, off kernel.F32) {
	t, share := st.t, count.F32().Recip()
	about := func(vs []kernel.F32, is []kernel.Bool) []kernel.F32 {
		ds, shares := make([]kernel.F32, len(vs)), make([]kernel.F32, len(vs))
		for i, v := range vs {
			ds[i], shares[i] = v.Sub(centre), share
		}
		ds = only(ds, is, kernel.F(0))
		return []kernel.F32{products(ds, ds), products(ds, shares)}
	}
	// The elements are scaled before they are added, because the sum of large elements might
	// overflow.
	mean := func(vs []kernel.F32, share kernel.F32) kernel.F32 {
		scaled := make([]kernel.F32, len(vs))
		for i, v := range vs {
			scaled[i] = v.Mul(share)
		}
		return t.sum(tree(scaled))
	}
	if st.Each > 0 {
		var sums []kernel.F32
		st.each(unit, func(at []kernel.U32, is []kernel.Bool) {
			vs := x.read(at)
			centre = mean(only(vs, is, kernel.F(0)), share)
			sums = about(vs, is)
		})
		return centre, t.sum(sums[0]), t.sum(sums[1])
	}
	first := st.first.Add(t.lane).Min(st.last.Sub(kernel.U(1)))
	centre = mean(x(first), kernel.F(1/float32(unit*t.GroupLanes)))
	sums := st.sums(unit, 2, func(at []kernel.U32, is []kernel.Bool) []kernel.F32 {
		return about(x.read(at), is)
	})
	return centre, t.sum(sums[0]), t.sum(sums[1])
}

// momentPieces are the operands of a launch that reduces pieces.
type momentPieces struct{ centres, squares, offs kernel.Buffer[kernel.F32] }

func inputMoments(b *kernel.Builder) momentPieces {
	return momentPieces{kernel.Input[kernel.F32](b, "centres"), kernel.Input[kernel.F32](b, "squares"), kernel.Input[kernel.F32](b, "offs")}
}

// merge returns the moments of count elements in the pieces from, ..., to-1. The last piece has
// tail elements, and the others have length elements.
func (m momentPieces) merge(t *laneGroup, from, to kernel.U32, count, length, tail kernel.F32) (centre, squares, off kernel.F32) {
	b, first := t.b, from.Add(t.lane)
	elements := func(i kernel.U32) kernel.F32 {
		return kernel.Select(i.Add(kernel.U(1)).Eq(to), tail, length)
	}
	centre = t.sum(total(b, first, to, t.GroupLanes, func(acc kernel.F32, i kernel.U32) kernel.F32 {
		return m.centres.At(i).Fma(elements(i).Div(count), acc)
	}))
	sums := totals(b, 2, first, to, t.GroupLanes, func(acc []kernel.F32, i kernel.U32) []kernel.F32 {
		d, n, off := m.centres.At(i).Sub(centre), elements(i), m.offs.At(i)
		return []kernel.F32{
			acc[0].Add(m.squares.At(i).Add(d.Mul(n).Mul(d.Add(off.Mul(kernel.F(2)))))),
			d.Add(off).Fma(n.Div(count), acc[1]),
		}
	})
	return centre, t.sum(sums[0]), t.sum(sums[1])
}
