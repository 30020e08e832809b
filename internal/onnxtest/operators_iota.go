package onnxtest

import (
	"math"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

// What is made from numbers that count.
var iotaOperators = map[string]mapping{
	"BlackmanWindow": window(0.42, 0.5, 0.08),
	"EyeLike":        eyeLike,
	"HammingWindow":  window(25.0/46, 21.0/46, 0),
	"HannWindow":     window(0.5, 0.5, 0),
	"Hardmax":        along((*batch.Batch).Hardmax),
	"OneHot":         oneHot,
	"Range":          arange,
	"Trilu":          trilu,
}

func eyeLike(r *recorder) []batch.Value {
	to, s := Type(r.int("dtype", int(r.c.In[0].Type))), r.shape(0)
	return one(r.Cast(r.Eye(s[0], s[1], r.int("k", 0)), to.DType()))
}

func trilu(r *recorder) []batch.Value {
	k := 0
	if r.has(1) {
		k = r.host(1)[0]
	}
	if r.int("upper", 1) != 0 {
		return one(r.Triu(r.x(0), k))
	}
	return one(r.Tril(r.x(0), k))
}

// oneHot counts negative ids from the end.
func oneHot(r *recorder) []batch.Value {
	ids, depth, values := r.Cast(r.x(0), op.I32), int(r.scalar(1, 0)), r.c.In[2]
	set := r.Cast(r.OneHot(r.Remainder(ids, r.whole(depth)), depth, r.int("axis", -1)), op.Bool)
	value := func(i int) batch.Value {
		return r.upload(&Tensor{Type: values.Type, Shape: op.Shape{1}, Data: values.Data[i : i+1]})
	}
	return one(r.Where(set, value(1), value(0)))
}

// arange adds multiples of the step, counted as numbers of its type.
func arange(r *recorder) []batch.Value {
	start, limit, step := r.c.In[0].Data[0], r.c.In[1].Data[0], r.c.In[2].Data[0]
	n := max(int(math.Ceil((limit-start)/step)), 0)
	count := r.Cast(r.number(op.Shape{n}, func(i int) int { return i }), r.x(0).Type())
	return one(r.Add(r.Mul(count, r.x(2)), r.x(0)))
}

// window: a sum of cosines over a period of as many elements, or of one less.
func window(a, b, c float64) mapping {
	return func(r *recorder) []batch.Value {
		n := r.host(0)[0]
		period := float64(n)
		if r.int("periodic", 1) == 0 {
			period--
		}
		f := op.Unary("window", func(x op.Expr) op.Expr {
			turn := x.Mul(op.Const(2 * math.Pi / period))
			return op.Const(a).Sub(op.Const(b).Mul(turn.Cos())).Add(op.Const(c).Mul(turn.Add(turn).Cos()))
		})
		return one(r.Map(f, r.Cast(r.number(op.Shape{n}, func(i int) int { return i }), op.F32)))
	}
}
