package onnxtest

import (
	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

var quantisedOperators = map[string]mapping{
	"DequantizeLinear":      func(r *recorder) []batch.Value { return one(r.dequantize(0, 1, 2)) },
	"DynamicQuantizeLinear": dynamicQuantize,
	"MatMulInteger":         matmulInteger,
	"QLinearMatMul":         qlinearMatMul,
	"QuantizeLinear":        func(r *recorder) []batch.Value { return one(r.quantize(r.x(0), 1, 2)) },
}

// centred returns operand x less operand zero, as floats.
func (r *recorder) centred(x, zero int) batch.Value {
	y := r.Cast(r.x(x), op.F32)
	if r.has(zero) {
		y = r.Sub(y, r.Cast(r.x(zero), op.F32))
	}
	return y
}

func (r *recorder) dequantize(x, scale, zero int) batch.Value {
	return r.Mul(r.centred(x, zero), r.Cast(r.x(scale), op.F32))
}

// quantize divides by operand scale, rounds, adds operand zero and saturates.
func (r *recorder) quantize(x batch.Value, scale, zero int) batch.Value {
	lo, hi := float32(0), float32(255)
	y := r.Round(r.Div(x, r.Cast(r.x(scale), op.F32)))
	if r.has(zero) {
		if r.c.In[zero].Type == Int8 {
			lo, hi = -128, 127
		}
		y = r.Add(y, r.Cast(r.x(zero), op.F32))
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
	return one(r.Cast(r.product(r.centred(0, 2), r.centred(1, 3)), op.I32))
}

func qlinearMatMul(r *recorder) []batch.Value {
	return one(r.quantize(r.product(r.dequantize(0, 1, 2), r.dequantize(3, 4, 5)), 6, 7))
}
