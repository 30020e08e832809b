package onnxtest

import (
	"math"
	"slices"

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

// diagonals returns for each element of a matrix on which diagonal it stands.
func (r *recorder) diagonals(s op.Shape) batch.Value {
	n := s[len(s)-1]
	return r.number(s[len(s)-2:], func(i int) int { return i%n - i/n })
}

func eyeLike(r *recorder) []batch.Value {
	to := Type(r.int("dtype", int(r.c.In[0].Type)))
	return one(r.Cast(r.Equal(r.diagonals(r.shape(0)), r.whole(r.int("k", 0))), to.DType()))
}

func trilu(r *recorder) []batch.Value {
	k := 0
	if r.has(1) {
		k = r.host(1)[0]
	}
	x, d := r.x(0), r.diagonals(r.shape(0))
	kept := r.LessEqual(d, r.whole(k))
	if r.int("upper", 1) != 0 {
		kept = r.GreaterEqual(d, r.whole(k))
	}
	return one(r.Where(kept, x, r.Cast(r.Const(0), x.Type())))
}

// oneHot counts negative ids from the end.
func oneHot(r *recorder) []batch.Value {
	ids, depth, values := r.Cast(r.x(0), op.I32), int(r.scalar(1, 0)), r.c.In[2]
	axis := r.axis(r.int("axis", -1), len(r.shape(0))+1)
	s := slices.Insert(slices.Clone(r.shape(0)), axis, depth)
	set := r.Equal(r.indices(s, axis), r.Unsqueeze(r.Remainder(ids, r.whole(depth)), axis))
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
