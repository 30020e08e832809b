package batch

import (
	"fmt"
	"math"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// The methods of this file return views: values that share the elements of others in another shape
// or order. No element is moved until an operation reads the view, and most operations read strided
// views in place.

// Reshape returns the elements of x in another shape, as a view. One extent may be -1: it is
// computed from the others.
//
// Execute or Compile returns [op.ErrShape] for a wrong number of elements. See docs/OPS.md#reshape.
func (b *Batch) Reshape(x Value, shape ...int) Value {
	a, err := op.ReshapeTo(shape...)
	return b.viewed(op.Reshape, a, err, x)
}

// Permute returns x with its axes in another order: axis i of the result is axis
// order[i] of x. Axes below 0 count from the end; each is named once.
//
//	b.Permute(x, 1, 0, 2) // [tokens heads width] to [heads tokens width]
//
// Execute or Compile returns [op.ErrShape] if order does not name each axis once. See docs/OPS.md#permute.
func (b *Batch) Permute(x Value, order ...int) Value {
	a, err := op.PermuteTo(order...)
	return b.viewed(op.Permute, a, err, x)
}

// SwapAxes returns x with two axes exchanged. Axes below 0 count from the end.
//
// Execute or Compile returns [op.ErrShape] for an axis that x does not have.
func (b *Batch) SwapAxes(x Value, i, j int) Value {
	order, err := b.axesBut(x)
	if err == nil {
		if i, err = x.axis(i); err == nil {
			if j, err = x.axis(j); err == nil {
				order[i], order[j] = order[j], order[i]
			}
		}
	}
	if err != nil {
		return b.failOp(op.Permute, err, []Value{x})
	}
	return b.Permute(x, order...)
}

// Slice returns elements of one axis of x: from start on, before stop, with the given step, like
// x[start:stop:step] of NumPy. Bounds and axes below 0 count from the end, and bounds outside are
// clamped. A stop of [op.End] takes all elements in the direction of step, which may be below 0.
//
//	b.Slice(x, 0, 0, 10, 1)       // the first ten rows
//	b.Slice(x, -1, 0, op.End, 2)  // every other column
//	b.Slice(x, 1, -1, op.End, -1) // the second axis backwards
//
// Execute or Compile returns [op.ErrShape] for a step of 0. See docs/OPS.md#slice.
func (b *Batch) Slice(x Value, axis, start, stop, step int) Value {
	return b.apply(op.Slice, op.SliceTo(axis, start, stop, step), x)
}

// Flip returns x with the elements of the axes in the opposite order. Without axes it flips all
// axes. Axes below 0 count from the end.
//
// Execute or Compile returns [op.ErrShape] for an axis that x does not have. See docs/OPS.md#flip.
func (b *Batch) Flip(x Value, axes ...int) Value {
	a, err := op.FlipOf(axes...)
	return b.viewed(op.Flip, a, err, x)
}

// Expand repeats x to a shape. The axes of x are aligned to the end of the shape. Axes that
// x lacks, and axes of one element, take the extent of the shape. -1 keeps the extent of x.
// Elementwise operations broadcast their operands without it.
//
// Execute or Compile returns [op.ErrShape] for a shape to which x does not broadcast.
// See docs/OPS.md#expand.
func (b *Batch) Expand(x Value, shape ...int) Value {
	a, err := op.ExpandTo(shape...)
	return b.viewed(op.Expand, a, err, x)
}

// Pad returns x with elements of a value added along an axis: before of them before its
// elements, and after of them after. An axis below 0 counts from the end.
//
// Execute or Compile returns [op.ErrShape] for a number of elements below 0: [Batch.Slice]
// takes elements away. See docs/OPS.md#pad.
func (b *Batch) Pad(x Value, axis, before, after int, value float32) Value {
	return b.apply(op.Pad, op.PadOf(axis, before, after, value), x)
}

// Diagonal returns the elements of x whose index along axis2 is the index along axis1 plus
// offset. A new last axis replaces the two axes. Axes below 0 count from the end. An offset
// beyond the extents gives no elements.
//
//	b.Diagonal(x, 0, -2, -1) // of each matrix
//
// Execute or Compile returns [op.ErrShape] for the same axis twice. See docs/OPS.md#diagonal.
func (b *Batch) Diagonal(x Value, offset, axis1, axis2 int) Value {
	return b.apply(op.Diagonal, op.DiagonalOf(offset, axis1, axis2), x)
}

// SlidingWindow returns windows along an axis of x. The axis then counts the windows, which
// start step elements apart. A new last axis holds the size elements of each window, which
// are dilation apart in x. The result is a view: elements that several windows share are in
// memory once. An axis below 0 counts from the end.
//
//	b.Mean(b.SlidingWindow(x, -1, 7, 1, 1), op.Axes(-1)) // a moving average
//
// Execute or Compile returns [op.ErrShape] for a window longer than the axis, or a size, step
// or dilation below 1. See docs/OPS.md#sliding_window.
func (b *Batch) SlidingWindow(x Value, axis, size, step, dilation int) Value {
	return b.apply(op.SlidingWindow, op.SlidingWindowOf(axis, size, step, dilation), x)
}

// Squeeze returns x without the axes, which have one element each, or without all
// axes of one element if none is named. Axes below 0 count from the end.
//
// Execute or Compile returns [op.ErrShape] for an axis of another extent.
func (b *Batch) Squeeze(x Value, axes ...int) Value {
	drop := make(map[int]bool)
	for _, a := range axes {
		i, err := x.axis(a)
		if err == nil && x.Shape()[i] != 1 {
			err = fmt.Errorf("axis %d of %v has %d elements: expected one: %w", a, x.Shape(), x.Shape()[i], device.ErrShape)
		}
		if err != nil {
			return b.failOp(op.Reshape, err, []Value{x})
		}
		drop[i] = true
	}
	s := []int{}
	for i, d := range x.Shape() {
		if !drop[i] && (d != 1 || len(axes) > 0) {
			s = append(s, d)
		}
	}
	return b.Reshape(x, s...)
}

// Unsqueeze returns x with axes of one element at the given places of the result.
// Places below 0 count from its end.
//
// Execute or Compile returns [op.ErrShape] for a place beyond the end, or one twice.
func (b *Batch) Unsqueeze(x Value, axes ...int) Value {
	rank := len(x.Shape()) + len(axes)
	one := make(map[int]bool)
	for _, a := range axes {
		if a < -rank || a >= rank || one[(a+rank)%rank] {
			return b.failOp(op.Reshape, fmt.Errorf("new axis %d is out of range for a result of %d axes or given twice: %w", a, rank, device.ErrShape), []Value{x})
		}
		one[(a+rank)%rank] = true
	}
	s, k := make([]int, rank), 0
	for i := range s {
		if s[i] = 1; !one[i] {
			s[i] = x.Shape()[k]
			k++
		}
	}
	return b.Reshape(x, s...)
}

// Split returns parts of x along an axis, of the given extents, which add up to
// that of x. An axis below 0 counts from the end.
//
//	parts := b.Split(qkv, -1, width, width, width)
//
// Execute or Compile returns [op.ErrShape] for other extents.
func (b *Batch) Split(x Value, axis int, extents ...int) []Value {
	parts := make([]Value, len(extents))
	i, err := x.axis(axis)
	sum := 0
	for _, n := range extents {
		if n < 0 || n > math.MaxInt-sum { // the sum would overflow
			sum = -1
			break
		}
		sum += n
	}
	if err == nil && sum != x.Shape()[i] {
		err = fmt.Errorf("parts %v of an axis of %d: they must add up to it: %w", extents, x.Shape()[i], device.ErrShape)
	}
	if err != nil {
		b.failOp(op.Slice, err, []Value{x})
		return parts
	}
	at := 0
	for k, n := range extents {
		parts[k] = b.Slice(x, i, at, at+n, 1)
		at += n
	}
	return parts
}

// Concat returns values one after the other along an axis. Their other extents,
// and their types, are the same. An axis below 0 counts from the end.
//
// Execute or Compile returns [op.ErrShape] for no values, or other extents. See docs/OPS.md#concat.
func (b *Batch) Concat(axis int, xs ...Value) Value {
	if len(xs) == 0 {
		return b.failOp(op.Concat, fmt.Errorf("no values: expected at least one: %w", device.ErrShape), nil)
	}
	// If there are more values than an operation supports, concatenate groups first.
	for len(xs) > op.MaxInputs {
		var groups []Value
		for len(xs) > 0 {
			n := min(op.MaxInputs, len(xs))
			groups, xs = append(groups, b.Concat(axis, xs[:n]...)), xs[n:]
		}
		xs = groups
	}
	return b.apply(op.Concat, op.ConcatAlong(axis), xs...)
}

// Stack concatenates values of one shape along a new axis of the result. An axis below 0 counts
// from the end of the result.
//
// Execute or Compile returns [op.ErrShape] for other shapes.
func (b *Batch) Stack(axis int, xs ...Value) Value {
	rows := make([]Value, len(xs))
	for i, x := range xs {
		rows[i] = b.Unsqueeze(x, axis)
	}
	return b.Concat(axis, rows...)
}

// viewed records a view whose parameters may be invalid.
func (b *Batch) viewed(o *op.Operation, a op.Attrs, err error, x Value) Value {
	if err != nil {
		return b.failOp(o, err, []Value{x})
	}
	return b.apply(o, a, x)
}

// axis resolves the number of an axis; numbers below 0 count from the end.
func (v Value) axis(i int) (int, error) {
	n := len(v.Shape())
	if i < -n || i >= n {
		return 0, fmt.Errorf("axis %d of %v, which has %d axes: %w", i, v.Shape(), n, device.ErrShape)
	}
	return (i + n) % n, nil
}

// axesBut returns the axes of x in order, except the given ones.
func (b *Batch) axesBut(x Value, but ...int) ([]int, error) {
	var axes []int
	for i := range x.Shape() {
		named := false
		for _, k := range but {
			k, err := x.axis(k)
			if err != nil {
				return nil, err
			}
			named = named || k == i
		}
		if !named {
			axes = append(axes, i)
		}
	}
	return axes, nil
}
