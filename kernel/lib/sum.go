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
	v := t.sum(total(b, c.From.Add(t.lane), c.To, s.Team, add))
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

// terms declares the operands of a sum and returns what adds term i to acc.
func terms(b *kernel.Builder, s *reduceSpec) func(acc kernel.F32, i kernel.U32) kernel.F32 {
	if s.Pieces {
		x := kernel.Input[kernel.F32](b, "pieces")
		return func(acc kernel.F32, i kernel.U32) kernel.F32 { return acc.Add(x.At(i)) }
	}
	x := input(b, "x", s.Type)
	switch s.Op {
	case "dot":
		y := input(b, "y", s.Type)
		return func(acc kernel.F32, i kernel.U32) kernel.F32 { return x(i).Fma(y(i), acc) }
	case "norm_l1":
		return func(acc kernel.F32, i kernel.U32) kernel.F32 { return acc.Add(x(i).Abs()) }
	case "norm_l2":
		return func(acc kernel.F32, i kernel.U32) kernel.F32 { return x(i).Fma(x(i), acc) }
	}
	return func(acc kernel.F32, i kernel.U32) kernel.F32 { return acc.Add(x(i)) }
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
