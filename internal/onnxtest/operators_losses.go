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
	s := r.shape(0)
	logs := r.back(r.LogSoftmax(r.last(r.x(0), 1, 2)), s, 1, 2)
	return []batch.Value{r.nll(logs), logs}
}

// nll takes the logarithm of the probability [n c …] of each label [n …] as a row of
// one element, times the weight of the label.
func (r *recorder) nll(logs batch.Value) batch.Value {
	s, labels := logs.Shape(), r.x(1)
	_, c, inner := around(s, 1, 2)
	place := r.number(labels.Shape(), func(i int) int { return i/inner*c*inner + i%inner })
	ids := r.Add(place, r.Mul(labels, r.whole(inner)))
	weight := r.Cast(r.Equal(labels, labels), op.F32)
	if r.has(2) {
		weight = r.pick(r.x(2), labels)
	}
	if _, ok := r.c.Node.Attributes["ignore_index"]; ok {
		// Any label will do where the loss is 0.
		ignored := r.Equal(labels, r.whole(r.int("ignore_index", 0)))
		weight = r.Where(ignored, r.Const(0), weight)
		ids = r.Where(ignored, place, ids)
	}
	loss := r.Mul(r.Neg(r.pick(logs, ids)), weight)
	switch r.text("reduction", "mean") {
	case "none":
		return loss
	case "sum":
		return r.Sum(loss)
	}
	return r.Div(r.Sum(loss), r.Sum(weight))
}

// pick returns the elements of x, counted through, that ids name.
func (r *recorder) pick(x, ids batch.Value) batch.Value {
	return r.Reshape(r.Gather(r.Reshape(x, product(x.Shape()), 1), ids), ids.Shape()...)
}

// whole returns an integer as an operand.
func (r *recorder) whole(v int) batch.Value { return batch.Upload(r.Batch, []int32{int32(v)}) }

// number returns an operand of shape s whose element i is f(i).
func (r *recorder) number(s op.Shape, f func(i int) int) batch.Value {
	list := make([]int32, product(s))
	for i := range list {
		list[i] = int32(f(i))
	}
	return r.Reshape(batch.Upload(r.Batch, list), s...)
}
