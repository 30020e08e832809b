package onnxtest

import (
	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

var lossOperators = map[string]mapping{
	"NegativeLogLikelihoodLoss": func(r *recorder) []batch.Value { return one(r.NLLLoss(r.x(0), r.x(1), r.x(2), r.lossOpts())) },
	"SoftmaxCrossEntropyLoss":   crossEntropy,
}

var reduces = map[string]op.Reduce{"mean": op.ReduceMean, "sum": op.ReduceSum, "none": op.ReduceNone}

func (r *recorder) lossOpts() op.LossOpts {
	o := op.LossOpts{Reduce: reduces[r.text("reduction", "mean")]}
	if _, ok := r.c.Node.Attributes["ignore_index"]; ok {
		o.Ignore = []int{r.int("ignore_index", 0)}
	}
	return o
}

func crossEntropy(r *recorder) []batch.Value {
	return []batch.Value{r.CrossEntropy(r.x(0), r.x(1), r.x(2), r.lossOpts()), r.LogSoftmax(r.x(0), op.Axes(1))}
}
