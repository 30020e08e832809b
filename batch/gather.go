package batch

import (
	"fmt"
	"math"
	"slices"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// Gather takes the elements of one axis of a table at the indices ids: table [a... v b...]
// and ids of i32 of any shape s give [a... s... b...]. The axis is the first, or that of
// [op.Axes]:
//
//	b.Gather(embeddings, tokens)     // rows
//	b.Gather(x, ids, op.Axes(-1))    // columns
//
// IDs from -v to -1 count from the end. Other ids outside [0, v) give NaN, or 0 if the
// elements are integers or truth values. A quantised table has two axes, gives f32, and is
// indexed along its first axis.
//
// IDs of another type are [op.ErrUnsupported]. More than one axis, or an axis that the
// table lacks, is [op.ErrShape]. Execute or Compile returns the error. See docs/OPS.md#gather.
func (b *Batch) Gather(table, ids Value, along ...op.Along) Value {
	axis, err := oneAxis(table, 0, along)
	if s := table.Shape(); err == nil && table.Type().Quantized() && len(s) != 2 {
		err = fmt.Errorf("quantised table of shape %v: expected [v d]: %w", s, op.ErrShape)
	}
	if err != nil {
		return b.failOp(op.Gather, err, []Value{table, ids})
	}
	return b.apply(op.Gather, op.GatherOf(axis), table, ids)
}

// TakeAlong takes one element of x for each index, as numpy.take_along_axis and
// torch.gather do. The result has the shape of ids. For a matrix and axis 1, element [i j]
// is x[i ids[i j]]:
//
//	values := b.TakeAlong(x, order, -1) // with order := b.ArgSort(x), the elements in order
//
// An axis below 0 counts from the end. Along each other axis ids has at most as many
// elements as x. Indices count as in [Batch.Gather].
//
// Execute or Compile returns [op.ErrShape] for IDs with another number of axes, or with more
// elements along another axis.
func (b *Batch) TakeAlong(x, ids Value, axis int) Value {
	places, err := b.placesAlong(x, ids, axis)
	if err != nil {
		return b.failOp(op.Gather, err, []Value{x, ids})
	}
	return b.Gather(b.Reshape(x, -1), places)
}

// GatherND takes parts of x at indices of several axes. The last axis of ids, of i32, holds
// one index for each of the first k axes of x: x [a1... ak b...] and ids [s... k] give
// [s... b...]. It does what x[i, j, ...] does in NumPy with k arrays of indices. Indices
// below 0 count from the end of their axis. If one of the k indices is outside, the result
// is as in [Batch.Gather].
//
// Execute or Compile returns [op.ErrShape] for a k greater than the number of axes of x.
func (b *Batch) GatherND(x, ids Value) Value {
	places, rows, err := b.placesND(x, ids)
	if err != nil {
		return b.failOp(op.Gather, err, []Value{x, ids})
	}
	return b.Gather(rows, places)
}

// oneAxis returns the single axis of along, or the default if along has none.
func oneAxis(x Value, none int, along []op.Along) (int, error) {
	o, err := op.OptionOf(along)
	if err != nil || o == (op.Along{}) {
		return none, err
	}
	axes, _, err := o.Of(len(x.Shape()))
	if err == nil && (len(axes) != 1 || o.Keeps()) {
		err = fmt.Errorf("axes %v: expected one axis: %w", axes, device.ErrShape)
	}
	if err != nil {
		return 0, err
	}
	return axes[0], nil
}

// outside is an id that is invalid for every axis.
const outside = math.MinInt32

// counted returns the numbers 0 to n-1, times step, along one axis of rank axes.
func (b *Batch) counted(n, step, axis, rank int) Value {
	s := slices.Repeat([]int{1}, rank)
	s[axis] = n
	return b.Reshape(b.Mul(b.index(n), b.whole(step)), s...)
}

// inside returns ids of an axis of n elements, with negative ids resolved, and whether each is
// valid.
func (b *Batch) inside(ids Value, n int) (at, is Value) {
	zero, end := b.whole(0), b.whole(n)
	at = b.Where(b.Less(ids, zero), b.Add(ids, end), ids)
	return at, b.And(b.GreaterEqual(at, zero), b.Less(at, end))
}

// placesAlong returns for each index the flat index in x of the element that it selects along an
// axis.
func (b *Batch) placesAlong(x, ids Value, axis int) (Value, error) {
	s, t := x.Shape(), ids.Shape()
	axis, err := x.axis(axis)
	if err != nil {
		return Value{}, err
	}
	if len(s) != len(t) {
		return Value{}, fmt.Errorf("ids of shape %v along an axis of %v, which has %d axes: %w", t, s, len(s), device.ErrShape)
	}
	at, is := b.inside(ids, s[axis])
	inner := 1
	for i := len(s) - 1; i >= 0; i-- {
		switch {
		case i == axis:
			at = b.Mul(at, b.whole(inner))
			if i < len(s)-1 {
				at = b.Add(at, b.within(s, t, i))
			}
		case t[i] > s[i]:
			return Value{}, fmt.Errorf("ids of shape %v along axis %d of %v: more elements along axis %d: %w", t, axis, s, i, device.ErrShape)
		}
		inner *= s[i]
	}
	for i, step := 0, inner; i < axis; i++ {
		step /= max(1, s[i])
		at = b.Add(at, b.counted(t[i], step, i, len(s)))
	}
	return b.Where(is, at, b.whole(outside)), nil
}

// within returns the flat indices in s of the elements of t, counting only the axes after the given one.
func (b *Batch) within(s, t op.Shape, axis int) Value {
	var sum Value
	for i, step := len(s)-1, 1; i > axis; i-- {
		v := b.counted(t[i], step, i, len(s))
		if step *= s[i]; i == len(s)-1 {
			sum = v
		} else {
			sum = b.Add(sum, v)
		}
	}
	return sum
}

// placesND returns x as rows, and the row number for each list of indices in the last axis of ids.
func (b *Batch) placesND(x, ids Value) (places, rows Value, err error) {
	s, t := x.Shape(), ids.Shape()
	if len(t) == 0 {
		return Value{}, Value{}, fmt.Errorf("no axis has ids: %w", device.ErrShape)
	}
	depth := t[len(t)-1]
	if depth > len(s) {
		return Value{}, Value{}, fmt.Errorf("%d indices for each element of %v: expected at most %d: %w", depth, s, len(s), device.ErrShape)
	}
	shape := slices.Concat([]int{extent(s[:depth])}, s[depth:])
	if rows = b.Reshape(x, shape...); depth == 0 {
		return b.Expand(b.whole(0), t[:len(t)-1]...), rows, nil
	}
	var at, all Value
	for k := range depth {
		i, is := b.inside(b.Squeeze(b.Slice(ids, -1, k, k+1, 1), -1), s[k])
		i = b.Mul(i, b.whole(extent(s[k+1:depth])))
		if k == 0 {
			at, all = i, is
			continue
		}
		at, all = b.Add(at, i), b.And(all, is)
	}
	return b.Where(all, at, b.whole(outside)), rows, nil
}
