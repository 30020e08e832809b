package onnxtest

import (
	"slices"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

var convOperators = map[string]mapping{
	"CausalConvWithState": causalConv,
	"Col2Im":              col2Im,
	"Conv":                func(r *recorder) []batch.Value { return one(r.Conv(r.x(0), r.x(1), r.x(2), r.convOpts())) },
	"ConvTranspose":       convTranspose,
}

func (r *recorder) convOpts() op.ConvOpts {
	o := op.ConvOpts{Stride: r.ints("strides"), Dilation: r.ints("dilations"), Same: sames[r.text("auto_pad", "")],
		Groups: r.int("group", 1), OutPad: r.ints("output_padding")}
	o.Pad, o.PadAfter = r.pads()
	return o
}

// causalConv is a depthwise convolution over the current and the preceding elements. The
// state holds the preceding elements and is zero at first. The last elements are the next state.
func causalConv(r *recorder) []batch.Value {
	x, past := r.x(0), r.shape(1)[2]-1
	if r.has(3) {
		x = r.Concat(-1, r.x(3), x)
	} else {
		x = r.Pad(x, -1, past, 0, 0)
	}
	y := r.Conv(x, r.x(1), r.x(2), op.ConvOpts{Groups: r.shape(0)[1]})
	if r.text("activation", "none") != "none" {
		y = r.Silu(y)
	}
	n := x.Shape()[2]
	return []batch.Value{y, r.Slice(x, -1, n-past, n, 1)}
}

// convTranspose finds the padding for the extents that a node asks for.
func convTranspose(r *recorder) []batch.Value {
	o := r.convOpts()
	for i, want := range r.ints("output_shape") {
		if i == 0 {
			n := len(r.shape(0)) - 2
			o.Pad, o.PadAfter, o.OutPad = make([]int, n), make([]int, n), slices.Concat(o.OutPad, make([]int, n))[:n]
		}
		full := (r.shape(0)[2+i]-1)*at(o.Stride, i) + (r.shape(1)[2+i]-1)*at(o.Dilation, i) + 1 + o.OutPad[i]
		total := max(0, full-want)
		if o.Pad[i] = total - total/2; o.Same == op.SameUpper {
			o.Pad[i] = total / 2
		}
		o.PadAfter[i] = total - o.Pad[i]
		o.OutPad[i] += max(0, want-full)
	}
	if r.ints("output_shape") != nil {
		o.Same = op.SameNone
	}
	return one(r.ConvTranspose(r.x(0), r.x(1), r.x(2), o))
}

// at returns element i of a list, 1 if there is no list.
func at(list []int, i int) int {
	if list == nil {
		return 1
	}
	return list[i]
}

func col2Im(r *recorder) []batch.Value {
	o := op.UnfoldOpts{Stride: r.ints("strides"), Dilation: r.ints("dilations")}
	o.Pad, o.PadAfter = r.pads()
	return one(r.Fold(r.x(0), r.host(1), r.host(2), o))
}
