//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// sums computes reductions to sums of terms, and results that are derived from sums.
var sums = maker[reduceParams, reduceSpec]{name: "reduce_sum", build: func(b *kernel.Builder, p *reduceParams, s reduceSpec, e *epilogue) {
	t := newLaneGroup(b, s.groupLayout)
	x := s.input(b, "x")
	y := x
	if s.Op == "dot" && !s.Pieces {
		y = s.input(b, "y")
	}
	put := s.result(b, op.F32, e)
	c := pieceOf(b, p, t, s.Split)
	st := c.units(t, &s)
	v := t.sum(st.sums(s.Unit, 1, func(at []kernel.U32, is []kernel.Bool) []kernel.F32 {
		xs := only(x.read(at), is, kernel.F(0))
		switch {
		case s.Pieces:
		case s.Op == "dot":
			return []kernel.F32{products(xs, only(y.read(at), is, kernel.F(0)))}
		case s.Op == "norm_l2":
			return []kernel.F32{products(xs, xs)}
		case s.Op == "norm_l1":
			for i := range xs {
				xs[i] = xs[i].Abs()
			}
		}
		return []kernel.F32{tree(xs)}
	})[0])
	b.If(c.Is.And(t.lane.Eq(kernel.U(0))), func() {
		if s.whole() {
			switch s.Op {
			case "mean":
				v = v.Div(b.F32(&p.Count))
			case "norm_l2":
				v = v.Sqrt()
			}
		}
		put(c.Number, kernel.Dyn(v))
	})
}}

// input declares an operand, or its pieces.
func (s *reduceSpec) input(b *kernel.Builder, name string) units {
	if s.Pieces {
		return inputUnits(b, "pieces", op.F32, 1)
	}
	return inputUnits(b, name, s.Type, s.Unit)
}

// products returns the sum of the products of xs and ys.
func products(xs, ys []kernel.F32) kernel.F32 {
	n := min(4, len(xs))
	sums := make([]kernel.F32, n)
	for i := range xs {
		if i < n {
			sums[i] = xs[i].Mul(ys[i])
		} else {
			sums[i%n] = xs[i].MulAdd(ys[i], sums[i%n])
		}
	}
	return tree(sums)
}

// result declares the result of type t, or its pieces.
func (s *reduceSpec) result(b *kernel.Builder, t op.DType, e *epilogue) func(i kernel.U32, v kernel.Dynamic) {
	if s.Split {
		return outputValue(b, "parts", t).set
	}
	return e.result(b, resultOf(t, s.Type))
}

// resultOf returns the type of a result in memory: the type of the operand if it is a float.
func resultOf(t, operand op.DType) op.DType {
	if t == op.F32 {
		return operand
	}
	return t
}
