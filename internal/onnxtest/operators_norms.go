package onnxtest

import (
	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

var normOperators = map[string]mapping{
	"BatchNormalization":        batchNorm,
	"GroupNormalization":        groupNorm,
	"InstanceNormalization":     instanceNorm,
	"MeanVarianceNormalization": meanVariance,
}

// batchNorm normalises channels by the given mean and variance, or in training by
// their own, which then move the given ones.
func batchNorm(r *recorder) []batch.Value {
	x, mean, variance, o := r.x(0), r.x(3), r.x(4), op.NormOpts{Eps: r.float("epsilon", 0)}
	if r.int("training_mode", 0) == 0 {
		return one(r.BatchNorm(x, mean, variance, r.x(1), r.x(2), o))
	}
	axes := op.Axes(append([]int{0}, upTo(2, len(r.shape(0)))...)...)
	mean, variance = r.Mean(x, axes), r.Var(x, op.VarOpts{Along: axes})
	momentum := r.float("momentum", 0.9)
	return []batch.Value{r.BatchNorm(x, mean, variance, r.x(1), r.x(2), o), r.Lerp(mean, r.x(3), momentum), r.Lerp(variance, r.x(4), momentum)}
}

func groupNorm(r *recorder) []batch.Value {
	return one(r.GroupNorm(r.x(0), r.int("num_groups", 0), r.x(1), r.x(2), op.NormOpts{Eps: r.float("epsilon", 0)}))
}

func instanceNorm(r *recorder) []batch.Value {
	return one(r.InstanceNorm(r.x(0), r.x(1), r.x(2), op.NormOpts{Eps: r.float("epsilon", 0)}))
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
