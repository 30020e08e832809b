package onnxtest

import (
	"math"
	"slices"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

// reduction is a method of batches that reduces along axes.
type reduction func(*batch.Batch, batch.Value, ...op.Along) batch.Value

var reductionOperators = map[string]mapping{
	"ReduceL1":        reduce(nil, (*batch.Batch).NormL1, nil),
	"ReduceL2":        reduce(nil, (*batch.Batch).NormL2, nil),
	"ReduceLogSum":    reduce(nil, (*batch.Batch).Sum, (*batch.Batch).Log),
	"ReduceLogSumExp": reduce(nil, (*batch.Batch).LogSumExp, nil),
	"ReduceMax":       reduce(nil, ofBools(orElse((*batch.Batch).Max, math.Inf(-1))), nil),
	"ReduceMean":      reduce(nil, (*batch.Batch).Mean, nil),
	"ReduceMin":       reduce(nil, ofBools(orElse((*batch.Batch).Min, math.Inf(1))), nil),
	"ReduceProd":      reduce(nil, (*batch.Batch).Prod, nil),
	"ReduceSum":       reduce(nil, (*batch.Batch).Sum, nil),
	"ReduceSumSquare": reduce((*batch.Batch).Square, (*batch.Batch).Sum, nil),

	"ArgMax": extreme((*batch.Batch).ArgMax),
	"ArgMin": extreme((*batch.Batch).ArgMin),

	"GlobalAveragePool": global((*batch.Batch).Mean),
	"GlobalMaxPool":     global((*batch.Batch).Max),
}

var rowOperators = map[string]mapping{
	"CumProd":            scan((*batch.Batch).Cumprod),
	"CumSum":             scan((*batch.Batch).Cumsum),
	"Softmax":            along((*batch.Batch).Softmax),
	"LogSoftmax":         along((*batch.Batch).LogSoftmax),
	"LpNormalization":    lpNormalize,
	"LayerNormalization": layerNorm,
	"RMSNormalization":   rmsNorm,
	"TopK":               topK,
}

// product returns the number of elements of extents.
func product(extents []int) int {
	n := 1
	for _, d := range extents {
		n *= d
	}
	return n
}

// upTo returns the axes [from, to).
func upTo(from, to int) []int {
	var axes []int
	for i := from; i < to; i++ {
		axes = append(axes, i)
	}
	return axes
}

// along maps an operator to a row operation along its axis, by default the last.
func along(f reduction) mapping {
	return func(r *recorder) []batch.Value {
		return one(f(r.Batch, r.x(0), op.Axes(r.int("axis", -1))))
	}
}

// axes returns the axes that an operator names: its second operand or its
// attribute.
func (r *recorder) axes() []int {
	if r.has(1) {
		return r.host(1)
	}
	return r.ints("axes")
}

// keep returns axes as those of a reduction that keeps them or not.
func (r *recorder) keep(axes ...int) op.Along {
	a := op.Axes(axes...)
	if r.int("keepdims", 1) != 0 {
		a = a.KeepDims()
	}
	return a
}

// reduce maps an operator to a reduction between functions that may be nil. No
// axes stand for all, or with noop_with_empty_axes for no reduction.
func reduce(before func(*batch.Batch, batch.Value) batch.Value, f reduction, after func(*batch.Batch, batch.Value) batch.Value) mapping {
	return func(r *recorder) []batch.Value {
		x, axes := r.x(0), r.axes()
		if before != nil {
			x = before(r.Batch, x)
		}
		if len(axes) > 0 || r.int("noop_with_empty_axes", 0) == 0 {
			x = f(r.Batch, x, r.keep(axes...))
		}
		if after != nil {
			x = after(r.Batch, x)
		}
		return one(r.Reshape(x, x.Shape()...))
	}
}

// ofBools reduces bools as the numbers 0 and 1.
func ofBools(f reduction) reduction {
	return func(b *batch.Batch, x batch.Value, along ...op.Along) batch.Value {
		if x.Type() == op.Bool {
			return b.Cast(f(b, b.Cast(x, op.F32), along...), op.Bool)
		}
		return f(b, x, along...)
	}
}

// orElse reduces nothing to v.
func orElse(f reduction, v float64) reduction {
	return func(b *batch.Batch, x batch.Value, along ...op.Along) batch.Value {
		if slices.Contains(x.Shape(), 0) {
			return b.AddScalar(b.Sum(x, along...), float32(v))
		}
		return f(b, x, along...)
	}
}

// extreme maps an operator to the index of an extreme along an axis: the first of
// equal ones, or the last, which is the first from the end.
func extreme(f reduction) mapping {
	return func(r *recorder) []batch.Value {
		s := r.shape(0)
		axis := r.axis(r.int("axis", 0), len(s))
		if r.int("select_last_index", 0) == 0 {
			return one(f(r.Batch, r.x(0), r.keep(axis)))
		}
		return one(r.Sub(r.whole(s[axis]-1), f(r.Batch, r.Flip(r.x(0), axis), r.keep(axis))))
	}
}

// global maps an operator to a reduction of all axes behind the first two.
func global(f reduction) mapping {
	return func(r *recorder) []batch.Value {
		return one(f(r.Batch, r.x(0), op.Axes(upTo(2, len(r.shape(0)))...).KeepDims()))
	}
}

// scan maps an operator to a scan: reversed elements from the end on, and exclusive
// ones moved by one place, with what stands for nothing at the first.
func scan(f func(b *batch.Batch, x batch.Value, opts ...op.ScanOpts) batch.Value) mapping {
	return func(r *recorder) []batch.Value {
		return one(f(r.Batch, r.x(0), op.ScanOpts{Reverse: r.int("reverse", 0) != 0, Exclusive: r.int("exclusive", 0) != 0, Along: op.Axes(r.host(1)[0])}))
	}
}

func lpNormalize(r *recorder) []batch.Value {
	return one(r.Normalize(r.x(0), op.NormalizeOpts{P: float32(r.int("p", 2)), Along: op.Axes(r.int("axis", -1))}))
}

// flat returns the first axis that is normalised, and operand 0 as rows.
func (r *recorder) flat() (axis int, x batch.Value) {
	s := r.shape(0)
	axis = r.axis(r.int("axis", -1), len(s))
	return axis, r.Reshape(r.x(0), append(slices.Clone(s[:axis]), product(s[axis:]))...)
}

// weight returns operand i as one row.
func (r *recorder) weight(i int) batch.Value {
	if !r.has(i) {
		return batch.Value{}
	}
	return r.Reshape(r.x(i), product(r.shape(i)))
}

func layerNorm(r *recorder) []batch.Value {
	eps, s := r.float("epsilon", 1e-5), r.shape(0)
	axis, x := r.flat()
	y := r.Reshape(r.LayerNorm(x, r.weight(1), r.weight(2), op.NormOpts{Eps: eps}), s...)
	if len(r.c.Out) == 1 {
		return one(y)
	}
	a := op.Axes(upTo(axis, len(s))...).KeepDims()
	return []batch.Value{y, r.Mean(r.x(0), a), r.Rsqrt(r.AddScalar(r.Var(r.x(0), op.VarOpts{Along: a}), eps))}
}

func rmsNorm(r *recorder) []batch.Value {
	_, x := r.flat()
	return one(r.Reshape(r.RMSNorm(x, r.weight(1), op.NormOpts{Eps: r.float("epsilon", 1e-5)}), r.shape(0)...))
}

// topK brings the axis to the end. The least elements, and those of integers, are the
// first ones in order.
func topK(r *recorder) []batch.Value {
	values, indices := r.TopK(r.x(0), r.host(1)[0], op.TopOpts{Smallest: r.int("largest", 1) == 0, Along: op.Axes(r.int("axis", -1))})
	return []batch.Value{values, indices}
}
