package onnxtest

import (
	"slices"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

// rows is a method of batches that reduces rows, [... n] to [...].
type rows func(*batch.Batch, batch.Value) batch.Value

var reductionOperators = map[string]mapping{
	"ReduceL1":        reduce(nil, (*batch.Batch).NormL1Rows, nil),
	"ReduceL2":        reduce(nil, (*batch.Batch).NormL2Rows, nil),
	"ReduceLogSum":    reduce(nil, (*batch.Batch).SumRows, (*batch.Batch).Log),
	"ReduceLogSumExp": reduce(nil, logSumExp, nil),
	"ReduceMax":       reduce(nil, (*batch.Batch).MaxRows, nil),
	"ReduceMean":      reduce(nil, (*batch.Batch).MeanRows, nil),
	"ReduceMin":       reduce(nil, (*batch.Batch).MinRows, nil),
	"ReduceSum":       reduce(nil, (*batch.Batch).SumRows, nil),
	"ReduceSumSquare": reduce((*batch.Batch).Square, (*batch.Batch).SumRows, nil),

	"ArgMax": extreme((*batch.Batch).ArgMaxRows),
	"ArgMin": extreme((*batch.Batch).ArgMinRows),

	"GlobalAveragePool": global((*batch.Batch).MeanRows),
	"GlobalMaxPool":     global((*batch.Batch).MaxRows),
}

var rowOperators = map[string]mapping{
	"CumSum":             cumsum,
	"Softmax":            along(func(r *recorder, x batch.Value) batch.Value { return r.Softmax(x) }),
	"LogSoftmax":         along(func(r *recorder, x batch.Value) batch.Value { return r.LogSoftmax(x) }),
	"LpNormalization":    along(lpNormalize),
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

// around returns the extents of s before, at and after the axes [from, to) as
// one number each.
func around(s op.Shape, from, to int) (outer, n, inner int) {
	return product(s[:from]), product(s[from:to]), product(s[to:])
}

// last brings the axes [from, to) of x behind the others, as rows: [a b n].
func (r *recorder) last(x batch.Value, from, to int) batch.Value {
	a, n, b := around(x.Shape(), from, to)
	if b == 1 {
		return r.Reshape(x, a, b, n)
	}
	return r.Transpose(r.Reshape(x, a, n, b))
}

// back brings rows [a b n] back to the axes of shape s from which last took them.
func (r *recorder) back(y batch.Value, s op.Shape, from, to int) batch.Value {
	if _, _, b := around(s, from, to); b != 1 {
		y = r.Transpose(y)
	}
	return r.Reshape(y, s...)
}

// along maps an operator to a row operation along its axis, by default the last.
func along(f func(*recorder, batch.Value) batch.Value) mapping {
	return func(r *recorder) []batch.Value {
		s := r.shape(0)
		axis := r.axis(r.int("axis", -1), len(s))
		return one(r.back(f(r, r.last(r.x(0), axis, axis+1)), s, axis, axis+1))
	}
}

// axes returns the axes that an operator reduces, rising: its second operand or
// its attribute, by default all.
func (r *recorder) axes() []int {
	list := r.ints("axes")
	if r.has(1) {
		list = r.host(1)
	}
	rank := len(r.shape(0))
	if len(list) == 0 && r.int("noop_with_empty_axes", 0) == 0 {
		for i := range rank {
			list = append(list, i)
		}
	}
	axes := []int{}
	for _, a := range list {
		axes = append(axes, r.axis(a, rank))
	}
	slices.Sort(axes)
	return axes
}

// without returns s with extents of 1 on the axes, or without them.
func without(s op.Shape, axes []int, keep bool) op.Shape {
	out := op.Shape{}
	for i, d := range s {
		switch {
		case !slices.Contains(axes, i):
			out = append(out, d)
		case keep:
			out = append(out, 1)
		}
	}
	return out
}

// reduce maps an operator to a reduction of rows, between functions that may be
// nil. Axes that stand side by side are one; from the last, so that those before
// it keep their places.
func reduce(before func(*batch.Batch, batch.Value) batch.Value, f rows, after func(*batch.Batch, batch.Value) batch.Value) mapping {
	return func(r *recorder) []batch.Value {
		x, axes := r.x(0), r.axes()
		if before != nil {
			x = before(r.Batch, x)
		}
		for end := len(axes); end > 0 && r.Err() == nil; {
			from := end - 1
			for from > 0 && axes[from-1] == axes[from]-1 {
				from--
			}
			s := append(op.Shape{}, x.Shape()...)
			x = f(r.Batch, r.last(x, axes[from], axes[end-1]+1))
			x = r.Reshape(x, without(s, axes[from:end], true)...)
			end = from
		}
		if after != nil {
			x = after(r.Batch, x)
		}
		return one(r.Reshape(x, without(r.shape(0), axes, r.int("keepdims", 1) != 0)...))
	}
}

// logSumExp takes the greatest element of each row off first, so that nothing
// overflows.
func logSumExp(b *batch.Batch, x batch.Value) batch.Value {
	most := b.MaxRows(x)
	column := b.Reshape(most, append(append(op.Shape{}, most.Shape()...), 1)...)
	return b.Add(b.Log(b.SumRows(b.Exp(b.Sub(x, column)))), most)
}

// extreme maps an operator to the index of an extreme along an axis.
func extreme(f rows) mapping {
	return func(r *recorder) []batch.Value {
		if r.int("select_last_index", 0) != 0 {
			return r.refuse("the last of equal extremes")
		}
		s := r.shape(0)
		axis := r.axis(r.int("axis", 0), len(s))
		y := f(r.Batch, r.last(r.x(0), axis, axis+1))
		return one(r.Reshape(y, without(s, []int{axis}, r.int("keepdims", 1) != 0)...))
	}
}

// global maps an operator to a reduction of all axes behind the first two.
func global(f rows) mapping {
	return func(r *recorder) []batch.Value {
		s := r.shape(0)
		out := append(op.Shape{}, s...)
		for i := range out[2:] {
			out[2+i] = 1
		}
		return one(r.Reshape(f(r.Batch, r.Reshape(r.x(0), s[0], s[1], product(s[2:]))), out...))
	}
}

func cumsum(r *recorder) []batch.Value {
	if r.int("exclusive", 0) != 0 || r.int("reverse", 0) != 0 {
		return r.refuse("exclusive or reversed sums")
	}
	s := r.shape(0)
	axis := r.axis(int(r.scalar(1, 0)), len(s))
	return one(r.back(r.Cumsum(r.last(r.x(0), axis, axis+1)), s, axis, axis+1))
}

// lpNormalize divides rows by their lengths, those of length 0 by 1.
func lpNormalize(r *recorder, x batch.Value) batch.Value {
	norm := r.NormL2Rows(x)
	if r.int("p", 2) == 1 {
		norm = r.NormL1Rows(x)
	}
	norm = r.Where(r.Equal(norm, r.Const(0)), r.Const(1), norm)
	return r.Div(x, r.Reshape(norm, append(append(op.Shape{}, norm.Shape()...), 1)...))
}

// flat returns the first axis that is normalised, and operand 0 as rows.
func (r *recorder) flat() (axis int, x batch.Value) {
	s := r.shape(0)
	axis = r.axis(r.int("axis", -1), len(s))
	return axis, r.Reshape(r.x(0), product(s[:axis]), product(s[axis:]))
}

// weight returns operand i as one row.
func (r *recorder) weight(i int) batch.Value {
	if !r.has(i) {
		return batch.Value{}
	}
	return r.Reshape(r.x(i), product(r.shape(i)))
}

func layerNorm(r *recorder) []batch.Value {
	eps := r.float("epsilon", 1e-5)
	axis, x := r.flat()
	s := r.shape(0)
	ones := append(append(op.Shape{}, s[:axis]...), slices.Repeat([]int{1}, len(s)-axis)...)
	y := r.Reshape(r.LayerNorm(x, r.weight(1), r.weight(2), op.NormOpts{Eps: eps}), s...)
	if len(r.c.Out) == 1 {
		return one(y)
	}
	return []batch.Value{y, r.Reshape(r.MeanRows(x), ones...), r.Reshape(r.Rsqrt(r.AddScalar(r.VarRows(x), eps)), ones...)}
}

func rmsNorm(r *recorder) []batch.Value {
	_, x := r.flat()
	return one(r.Reshape(r.RMSNorm(x, r.weight(1), op.NormOpts{Eps: r.float("epsilon", 1e-5)}), r.shape(0)...))
}

// topK negates what it takes the least of.
func topK(r *recorder) []batch.Value {
	s := append(op.Shape{}, r.shape(0)...)
	axis := r.axis(r.int("axis", -1), len(s))
	k, least := int(r.scalar(1, 1)), r.int("largest", 1) == 0
	x := r.last(r.x(0), axis, axis+1)
	if least {
		x = r.Neg(x)
	}
	values, indices := r.TopK(x, k)
	if least {
		values = r.Neg(values)
	}
	s[axis] = k
	return []batch.Value{r.back(values, s, axis, axis+1), r.back(indices, s, axis, axis+1)}
}
