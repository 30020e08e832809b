package onnxtest

import (
	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

var productOperators = map[string]mapping{
	"Det":    func(r *recorder) []batch.Value { return one(r.Det(r.x(0))) },
	"Gemm":   gemm,
	"MatMul": matmul,
}

func gemm(r *recorder) []batch.Value {
	o := op.MatMulOpts{TransA: r.int("transA", 0) != 0, TransB: r.int("transB", 0) != 0}
	y := r.Scale(r.MatMul(r.x(0), r.x(1), batch.None, o), r.float("alpha", 1))
	if r.has(2) {
		y = r.Add(y, r.Scale(r.x(2), r.float("beta", 1)))
	}
	return one(y)
}

// matmul makes matrices of vectors, as NumPy does.
func matmul(r *recorder) []batch.Value {
	return one(r.product(r.x(0), r.x(1)))
}

func (r *recorder) product(a, b batch.Value) batch.Value {
	row, column := len(a.Shape()) == 1, len(b.Shape()) == 1
	if row {
		a = r.Unsqueeze(a, 0)
	}
	if column {
		b = r.Unsqueeze(b, 1)
	}
	y := r.MatMul(a, b, batch.None)
	if row {
		y = r.Squeeze(y, -2)
	}
	if column {
		y = r.Squeeze(y, -1)
	}
	return y
}
