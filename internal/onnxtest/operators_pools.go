package onnxtest

import (
	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

var poolOperators = map[string]mapping{
	"AveragePool": func(r *recorder) []batch.Value { return one(r.AvgPool(r.x(0), r.ints("kernel_shape"), r.poolOpts())) },
	"LpPool":      func(r *recorder) []batch.Value { return one(r.LpPool(r.x(0), r.ints("kernel_shape"), r.poolOpts())) },
	"LRN":         localNorm,
	"MaxPool":     maxPool,
}

// sames are the paddings that follow from the stride.
var sames = map[string]op.Same{"SAME_UPPER": op.SameUpper, "SAME_LOWER": op.SameLower}

// pads returns the padding before and after each spatial axis.
func (r *recorder) pads() (before, after []int) {
	p := r.ints("pads")
	return p[:len(p)/2], p[len(p)/2:]
}

func (r *recorder) poolOpts() op.PoolOpts {
	o := op.PoolOpts{Stride: r.ints("strides"), Dilation: r.ints("dilations"), Same: sames[r.text("auto_pad", "")],
		Ceil: r.int("ceil_mode", 0) != 0, CountPad: r.int("count_include_pad", 0) != 0, P: float32(r.int("p", 2))}
	o.Pad, o.PadAfter = r.pads()
	if o.Stride == nil {
		o.Stride = []int{1}
	}
	return o
}

// maxPool returns the greatest elements, and where the first of each window lies, by
// rows or by columns of images.
func maxPool(r *recorder) []batch.Value {
	if len(r.c.Out) == 1 {
		return one(r.MaxPool(r.x(0), r.ints("kernel_shape"), r.poolOpts()))
	}
	y, ids := r.MaxPoolIndices(r.x(0), r.ints("kernel_shape"), r.poolOpts())
	if r.int("storage_order", 0) == 0 {
		return []batch.Value{y, ids}
	}
	s := r.shape(0)
	if len(s) != 4 {
		return r.refuse("with indices by columns of %v", s)
	}
	place := r.Remainder(ids, r.whole(s[2]*s[3]))
	row, column := r.FloorDivide(place, r.whole(s[3])), r.Remainder(place, r.whole(s[3]))
	return []batch.Value{y, r.Add(r.Sub(ids, place), r.Add(r.Mul(column, r.whole(s[2])), row))}
}

func localNorm(r *recorder) []batch.Value {
	o := op.LRNOpts{Alpha: r.float("alpha", 0), Beta: r.float("beta", 0), Bias: r.float("bias", 0)}
	return one(r.LocalResponseNorm(r.x(0), r.int("size", 1), o))
}
