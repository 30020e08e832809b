package batch

import (
	"math"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// The methods of this file and [Batch.Unique] find a number of elements that is known only after
// the batch has run, but shapes must be known before. So their results have the largest possible
// size, and a count is the number of valid elements.

// NonZero returns the indices of the elements of x that are not 0, in row-major order,
// and their number. For x with r axes and n elements the indices are an i32 [r n]: column
// j holds the index along each axis of the j-th such element, and columns from the count
// on are -1. The count is an i32 of shape []. It is numpy.nonzero:
//
//	at, count := b.NonZero(x)
//	list := b.Slice(at, 1, 0, k, 1) // for a k that was read from count before
//
// NaN is not 0, -0 is. x is of any type that [Batch.Cast] takes. A scalar has indices
// [0 1], and a count of 0 or 1.
//
// Execute or Compile returns [op.ErrShape] for more than 2^31-1 elements.
func (b *Batch) NonZero(x Value) (indices, count Value) {
	n, ok := b.flatSize("nonzero", x)
	if !ok {
		return Value{}, Value{}
	}
	s := x.Shape()
	at, count := b.ranks(b.Reshape(b.Cast(x, op.Bool), n))
	flat := b.Scatter(b.filled(op.I32, -1, n), at, b.index(n))
	if len(s) == 1 {
		return b.Reshape(flat, 1, n), count
	}
	// Avoid a division by an extent of 0; then there are no elements.
	steps := b.table(op.I32, op.Shape{len(s), 1}, func(i int) float64 { return float64(max(1, extent(s[i+1:]))) })
	extents := b.table(op.I32, op.Shape{len(s), 1}, func(i int) float64 { return float64(max(1, s[i])) })
	indices = b.Remainder(b.FloorDivide(flat, steps), extents)
	return b.Where(b.Less(flat, b.scalar(op.I32, 0)), b.scalar(op.I32, -1), indices), count
}

// Compress returns the elements of x at which the mask is not 0, in row-major order, and their
// number. values has shape [n] and the type of x, where n is the number of elements of x; elements
// from the count on are 0. count is an i32 of shape []. It is torch.masked_select, or x[mask] in
// NumPy:
//
//	positive, count := b.Compress(x, b.Greater(x, b.Const(0)))
//
// Execute or Compile returns [op.ErrShape] for a mask of another shape than x, and more than
// 2^31-1 elements.
func (b *Batch) Compress(x, mask Value) (values, count Value) {
	n, ok := b.flatSize("compress", x, mask)
	if !ok {
		return Value{}, Value{}
	}
	if !mask.Shape().Equal(x.Shape()) {
		b.refuse("compress", []Value{x, mask}, "mask of shape %v for elements of shape %v: expand it: %w", mask.Shape(), x.Shape(), device.ErrShape)
		return Value{}, Value{}
	}
	at, count := b.ranks(b.Reshape(b.Cast(mask, op.Bool), n))
	return b.Scatter(b.filled(x.Type(), 0, n), at, b.Reshape(x, n)), count
}

// flatSize returns the number of elements of the first operand of a composed method. It records an
// error if i32 cannot hold it.
func (b *Batch) flatSize(name string, in ...Value) (int, bool) {
	if !b.takes(name, in...) {
		return 0, false
	}
	n := extent(in[0].Shape())
	if int64(n) > math.MaxInt32 {
		b.refuse(name, in, "%d elements: at most %d are supported: %w", n, math.MaxInt32, device.ErrShape)
		return 0, false
	}
	return n, true
}

// ranks returns for each set element of a mask [n] the number of set elements before it, for other
// elements an invalid id, and the number of all set elements.
func (b *Batch) ranks(mask Value) (at, count Value) {
	before := b.Sub(b.Cumsum(b.Cast(mask, op.I32)), b.scalar(op.I32, 1))
	return b.Where(mask, before, b.scalar(op.I32, outside)), b.CountNonzero(mask)
}

// filled returns a value of the given type and extents with all elements v.
func (b *Batch) filled(t op.DType, v float64, extents ...int) Value {
	return b.Expand(b.scalar(t, v), extents...)
}
