package lib

import (
	"math"

	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

func init() {
	register(reduceFamily(1, 0, sums), op.Sum, op.Dot, op.NormL1, op.NormL2)
	register(reduceFamily(1, float32(math.NaN()), sums), op.Mean)
}

// sums reduces to sums of terms, and what follows from them.
var sums = newMaker("reduce_sum", func(b *kernel.Builder, p *reduceParams, s reduceSpec, e *epilogue) {
	t := newTeam(b, s.crew)
	add := terms(b, &s)
	put := s.result(b, op.F32, e)
	c := pieceOf(b, p, t, s.Split)
	from, to := c.vectors(s.vector())
	some := totals(b, s.vector(), from.Add(t.lane), to, s.Team, add)
	if s.Wide {
		some[0] = some[0].Add(some[1]).Add(some[2].Add(some[3]))
	}
	v := t.sum(some[0])
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
})

// terms declares the operands of a sum and returns what adds each component of
// vector i to one of acc.
func terms(b *kernel.Builder, s *reduceSpec) func(acc []kernel.F32, i kernel.U32) []kernel.F32 {
	if s.Pieces {
		x := kernel.Input[kernel.F32](b, "pieces")
		return func(acc []kernel.F32, i kernel.U32) []kernel.F32 { return []kernel.F32{acc[0].Add(x.At(i))} }
	}
	x := components(b, "x", s)
	y := x
	if s.Op == "dot" {
		y = components(b, "y", s)
	}
	return func(acc []kernel.F32, i kernel.U32) []kernel.F32 {
		xs, ys := x(i), y(i)
		for k, v := range xs {
			switch s.Op {
			case "dot", "norm_l2":
				acc[k] = v.Fma(ys[k], acc[k])
			case "norm_l1":
				acc[k] = acc[k].Add(v.Abs())
			default:
				acc[k] = acc[k].Add(v)
			}
		}
		return acc
	}
}

// components declares an operand and returns what reads vector i of it.
func components(b *kernel.Builder, name string, s *reduceSpec) func(i kernel.U32) []kernel.F32 {
	if !s.Wide {
		x := input(b, name, s.Type)
		return func(i kernel.U32) []kernel.F32 { return []kernel.F32{x(i)} }
	}
	x := kernel.Input[kernel.Vec4F](b, name)
	return func(i kernel.U32) []kernel.F32 {
		v := x.At(i)
		return []kernel.F32{v.X(), v.Y(), v.Z(), v.W()}
	}
}

// result declares the result of type t, or the pieces of it.
func (s *reduceSpec) result(b *kernel.Builder, t op.DType, e *epilogue) func(i kernel.U32, v kernel.Dynamic) {
	if s.Split {
		return outputValue(b, "parts", t).set
	}
	return e.result(b, resultOf(t, s.Type))
}

// resultOf returns the type of a result in memory, which is that of the operand
// if it is a float.
func resultOf(t, operand op.DType) op.DType {
	if t == op.F32 {
		return operand
	}
	return t
}
