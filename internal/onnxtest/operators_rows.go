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
	"ReduceLogSumExp": reduceOr(math.Inf(-1), logSumExp),
	"ReduceMax":       reduceOr(math.Inf(-1), ofBools((*batch.Batch).Max)),
	"ReduceMean":      reduce(nil, (*batch.Batch).Mean, nil),
	"ReduceMin":       reduceOr(math.Inf(1), ofBools((*batch.Batch).Min)),
	"ReduceSum":       reduce(nil, (*batch.Batch).Sum, nil),
	"ReduceSumSquare": reduce((*batch.Batch).Square, (*batch.Batch).Sum, nil),

	"ArgMax": extreme((*batch.Batch).ArgMax),
	"ArgMin": extreme((*batch.Batch).ArgMin),

	"GlobalAveragePool": global((*batch.Batch).Mean),
	"GlobalMaxPool":     global((*batch.Batch).Max),
}

var rowOperators = map[string]mapping{
	"CumSum":             cumsum,
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

// reduceOr maps an operator to a reduction that is nothing where there are no elements:
// axes without elements get one of that value.
func reduceOr(nothing float64, f reduction) mapping {
	return func(r *recorder) []batch.Value {
		s := r.shape(0)
		axes := r.axes()
		if len(axes) == 0 {
			axes = upTo(0, len(s))
		}
		for _, a := range axes {
			if s[r.axis(a, len(s))] == 0 {
				r.in[0] = r.Pad(r.x(0), a, 0, 1, float32(nothing))
			}
		}
		return reduce(nil, f, nil)(r)
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

// logSumExp takes the greatest element off first, so that nothing overflows, unless
// that is infinite.
func logSumExp(b *batch.Batch, x batch.Value, along ...op.Along) batch.Value {
	most := b.Max(x, along[0].KeepDims())
	most = b.Where(b.IsInf(most), b.Const(0), most)
	sum := b.Log(b.Sum(b.Exp(b.Sub(x, most)), along...))
	return b.Add(sum, b.Reshape(most, sum.Shape()...))
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

// cumsum sums reversed elements from the end on, and leaves each element out of its
// own sum by moving all by one place.
func cumsum(r *recorder) []batch.Value {
	x, s := r.x(0), r.shape(0)
	axis := r.axis(r.host(1)[0], len(s))
	reverse := r.int("reverse", 0) != 0
	if reverse {
		x = r.Flip(x, axis)
	}
	if r.int("exclusive", 0) != 0 {
		x = r.Slice(r.Pad(x, axis, 1, 0, 0), axis, 0, s[axis], 1)
	}
	x = r.Cumsum(x, op.Axes(axis))
	if reverse {
		x = r.Flip(x, axis)
	}
	return one(x)
}

// lpNormalize divides rows by their lengths, those of length 0 by 1.
func lpNormalize(r *recorder) []batch.Value {
	f := (*batch.Batch).NormL2
	if r.int("p", 2) == 1 {
		f = (*batch.Batch).NormL1
	}
	norm := f(r.Batch, r.x(0), op.Axes(r.int("axis", -1)).KeepDims())
	return one(r.Div(r.x(0), r.Where(r.Equal(norm, r.Const(0)), r.Const(1), norm)))
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

// topK negates what it takes the least of, and brings the axis to the end.
func topK(r *recorder) []batch.Value {
	axis, least := r.int("axis", -1), r.int("largest", 1) == 0
	x := r.SwapAxes(r.x(0), axis, -1)
	if least {
		x = r.Neg(x)
	}
	values, indices := r.TopK(x, r.host(1)[0])
	if least {
		values = r.Neg(values)
	}
	return []batch.Value{r.SwapAxes(values, axis, -1), r.SwapAxes(indices, axis, -1)}
}
