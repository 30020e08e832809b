package onnxtest

import (
	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

var lossOperators = map[string]mapping{
	"NegativeLogLikelihoodLoss": func(r *recorder) []batch.Value { return one(r.nll(r.x(0))) },
	"SoftmaxCrossEntropyLoss":   crossEntropy,
}

func crossEntropy(r *recorder) []batch.Value {
	logs := r.LogSoftmax(r.x(0), op.Axes(1))
	return []batch.Value{r.nll(logs), logs}
}

// nll takes the logarithm of the probability [n c …] of the label [n …] along the
// second axis, times the weight of the label.
func (r *recorder) nll(logs batch.Value) batch.Value {
	labels := r.x(1)
	weight := r.Cast(r.Equal(labels, labels), op.F32)
	if r.has(2) {
		weight = r.Gather(r.x(2), labels)
	}
	if _, ok := r.c.Node.Attributes["ignore_index"]; ok {
		// Any label will do where the loss is 0.
		ignored := r.Equal(labels, r.whole(r.int("ignore_index", 0)))
		weight = r.Where(ignored, r.Const(0), weight)
		labels = r.Where(ignored, r.whole(0), labels)
	}
	loss := r.Squeeze(r.TakeAlong(logs, r.Unsqueeze(labels, 1), 1), 1)
	loss = r.Mul(r.Neg(loss), weight)
	switch r.text("reduction", "mean") {
	case "none":
		return loss
	case "sum":
		return r.Sum(loss)
	}
	return r.Div(r.Sum(loss), r.Sum(weight))
}
