package onnxtest

import (
	"slices"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

var normOperators = map[string]mapping{
	"BatchNormalization":        batchNorm,
	"GroupNormalization":        groupNorm,
	"InstanceNormalization":     groupNorm,
	"MeanVarianceNormalization": meanVariance,
}

// channel returns numbers, one a channel, so that they spread over operand 0.
func (r *recorder) channel(x batch.Value) batch.Value {
	return r.Reshape(x, append([]int{-1}, slices.Repeat([]int{1}, len(r.shape(0))-2)...)...)
}

// batchNorm normalises channels by the given mean and variance, or in training by
// their own, which then move the given ones.
func batchNorm(r *recorder) []batch.Value {
	x, mean, variance := r.x(0), r.x(3), r.x(4)
	training := r.int("training_mode", 0) != 0
	if training {
		axes := op.Axes(append([]int{0}, upTo(2, len(r.shape(0)))...)...)
		mean, variance = r.Mean(x, axes), r.Var(x, op.VarOpts{Along: axes})
	}
	scale := r.Mul(r.x(1), r.Rsqrt(r.AddScalar(variance, r.float("epsilon", 1e-5))))
	y := r.Add(r.Mul(r.Sub(x, r.channel(mean)), r.channel(scale)), r.channel(r.x(2)))
	if !training {
		return one(y)
	}
	momentum := r.float("momentum", 0.9)
	return []batch.Value{y, r.Lerp(mean, r.x(3), momentum), r.Lerp(variance, r.x(4), momentum)}
}

// groupNorm normalises groups of channels, by default each channel alone.
func groupNorm(r *recorder) []batch.Value {
	s := r.shape(0)
	rows := r.Reshape(r.x(0), s[0], r.int("num_groups", s[1]), -1)
	y := r.LayerNorm(rows, batch.Value{}, batch.Value{}, op.NormOpts{Eps: r.float("epsilon", 1e-5)})
	return one(r.Add(r.Mul(r.Reshape(y, s...), r.channel(r.x(1))), r.channel(r.x(2))))
}

func meanVariance(r *recorder) []batch.Value {
	axes := r.ints("axes")
	if axes == nil {
		axes = []int{0, 2, 3}
	}
	a := op.Axes(axes...).KeepDims()
	deviation := r.Sqrt(r.Var(r.x(0), op.VarOpts{Along: a}))
	return one(r.Div(r.Sub(r.x(0), r.Mean(r.x(0), a)), r.AddScalar(deviation, 1e-9)))
}
