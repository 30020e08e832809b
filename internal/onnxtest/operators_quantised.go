package onnxtest

import (
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

// dequantize takes the number of an operand, that of its scale and of its zero.
func (r *recorder) dequantize(x, scale, zero, axis int) batch.Value {
	return r.Dequantize(r.x(x), r.x(scale), r.x(zero), op.QuantizeOpts{Axis: axis})
}

// centred returns operand x less operand zero, as floats.
func (r *recorder) centred(x, zero, axis int) batch.Value {
	return r.Dequantize(r.x(x), r.Const(1), r.x(zero), op.QuantizeOpts{Axis: axis})
}

func (r *recorder) quantize(x batch.Value, scale, zero int) batch.Value {
	o := op.QuantizeOpts{Signed: r.has(zero) && r.c.In[zero].Type == Int8}
	if len(x.Shape()) > 1 {
		o.Axis = r.int("axis", 1)
	}
	return r.Quantize(x, r.x(scale), r.x(zero), o)
}

func dynamicQuantize(r *recorder) []batch.Value {
	y, scale, zero := r.DynamicQuantize(r.x(0))
	return []batch.Value{y, scale, zero}
}

// matmulInteger multiplies as floats: sums below 2^24 are exact.
func matmulInteger(r *recorder) []batch.Value {
	return one(r.Cast(r.product(r.centred(0, 2, -2), r.centred(1, 3, -1)), op.I32))
}

func convInteger(r *recorder) []batch.Value {
	return one(r.Cast(r.Conv(r.centred(0, 2, 1), r.centred(1, 3, 0), batch.None, r.convOpts()), op.I32))
}

func qlinearMatMul(r *recorder) []batch.Value {
	return one(r.quantize(r.product(r.dequantize(0, 1, 2, -2), r.dequantize(3, 4, 5, -1)), 6, 7))
}

func qlinearConv(r *recorder) []batch.Value {
	if r.has(8) {
		return r.refuse("with a bias")
	}
	return one(r.quantize(r.Conv(r.dequantize(0, 1, 2, 1), r.dequantize(3, 4, 5, 0), batch.None, r.convOpts()), 6, 7))
}
