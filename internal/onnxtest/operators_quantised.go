package onnxtest

import (
	"slices"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

var quantisedOperators = map[string]mapping{
	"ConvInteger":           convInteger,
	"DequantizeLinear":      func(r *recorder) []batch.Value { return one(r.dequantize(0, 1, 2, r.int("axis", 1))) },
	"DynamicQuantizeLinear": dynamicQuantize,
	"MatMulInteger":         matmulInteger,
	"QLinearConv":           qlinearConv,
	"QLinearMatMul":         qlinearMatMul,
	"QuantizeLinear":        func(r *recorder) []batch.Value { return one(r.quantize(r.x(0), 1, 2)) },
}

// scaling returns operand i as floats that spread over shape s: one number, or one
// for each element or each block of an axis.
func (r *recorder) scaling(i int, s op.Shape, axis int) batch.Value {
	x, t := r.Cast(r.x(i), op.F32), r.shape(i)
	switch {
	case product(t) == 1:
		return x
	case len(t) == 1:
		return r.Reshape(x, append([]int{t[0]}, slices.Repeat([]int{1}, len(s)-1-r.axis(axis, len(s)))...)...)
	}
	axis = r.axis(axis, len(s))
	return r.Repeat(x, axis, s[axis]/t[axis])
}

// centred returns operand x less operand zero, as floats.
func (r *recorder) centred(x, zero, axis int) batch.Value {
	y := r.Cast(r.x(x), op.F32)
	if r.has(zero) {
		y = r.Sub(y, r.scaling(zero, y.Shape(), axis))
	}
	return y
}

func (r *recorder) dequantize(x, scale, zero, axis int) batch.Value {
	return r.Mul(r.centred(x, zero, axis), r.scaling(scale, r.shape(x), axis))
}

// quantize divides by operand scale, rounds, adds operand zero and saturates.
func (r *recorder) quantize(x batch.Value, scale, zero int) batch.Value {
	lo, hi := float32(0), float32(255)
	s, axis := x.Shape(), r.int("axis", 1)
	y := r.Round(r.Div(x, r.scaling(scale, s, axis)))
	if r.has(zero) {
		if r.c.In[zero].Type == Int8 {
			lo, hi = -128, 127
		}
		y = r.Add(y, r.scaling(zero, s, axis))
	}
	return r.Cast(r.Clip(y, lo, hi), op.I32)
}

func dynamicQuantize(r *recorder) []batch.Value {
	x, zero := r.x(0), r.Const(0)
	least, most := r.Minimum(r.Min(x), zero), r.Maximum(r.Max(x), zero)
	scale := r.Div(r.Sub(most, least), r.Const(255))
	point := r.Round(r.Clip(r.Div(r.Neg(least), scale), 0, 255))
	y := r.Clip(r.Add(r.Round(r.Div(x, scale)), point), 0, 255)
	return []batch.Value{r.Cast(y, op.I32), scale, r.Cast(point, op.I32)}
}

// matmulInteger multiplies as floats: sums below 2^24 are exact.
func matmulInteger(r *recorder) []batch.Value {
	return one(r.Cast(r.product(r.centred(0, 2, -2), r.centred(1, 3, -1)), op.I32))
}

func convInteger(r *recorder) []batch.Value {
	return one(r.Cast(r.convolve(r.centred(0, 2, 1), r.centred(1, 3, 0), batch.Value{}), op.I32))
}

func qlinearMatMul(r *recorder) []batch.Value {
	return one(r.quantize(r.product(r.dequantize(0, 1, 2, -2), r.dequantize(3, 4, 5, -1)), 6, 7))
}

func qlinearConv(r *recorder) []batch.Value {
	if r.has(8) {
		return r.refuse("with a bias")
	}
	return one(r.quantize(r.convolve(r.dequantize(0, 1, 2, 1), r.dequantize(3, 4, 5, 0), batch.Value{}), 6, 7))
}
