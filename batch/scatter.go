package batch

import (
	"fmt"
	"slices"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// Scatter returns x with elements of v written at the indices ids of one axis. It is the
// opposite of [Batch.Gather]: x [a... n b...], ids of i32 of shape s, v [a... s... b...].
// The zero options replace elements. Reduce adds, multiplies, or keeps the least or the
// greatest:
//
//	b.Scatter(x, ids, rows)                                     // x[ids] = rows
//	b.Scatter(x, ids, rows, op.ScatterOpts{Reduce: op.ScatterAdd}) // torch.index_add
//
// IDs from -n to -1 count from the end. Elements of v at other ids outside [0, n) are
// dropped. If several ids are equal, their elements are applied in the order of v: the last
// replacement remains, and sums have the same bits in every run. If nothing uses x
// afterwards, it is not copied.
//
// Execute or Compile returns [op.ErrShape] for other shapes, and [op.ErrUnsupported] for
// another type of v. See docs/OPS.md#scatter.
func (b *Batch) Scatter(x, ids, v Value, opts ...op.ScatterOpts) Value {
	o, err := op.OptionOf(opts)
	axis := 0
	if err == nil {
		var along []op.Along
		if o.Along != (op.Along{}) {
			along = append(along, o.Along)
		}
		axis, err = oneAxis(x, 0, along)
	}
	if err != nil {
		return b.failOp(op.Scatter, err, []Value{x, ids, v})
	}
	return b.apply(op.Scatter, op.ScatterOf(axis, o.Reduce), x, ids, v)
}

// ScatterAlong writes each element of v to the place in x that its index names along one
// axis, as torch.scatter does, and torch.scatter_reduce with Reduce. It is the opposite of
// [Batch.TakeAlong]. For a matrix and axis 1, it writes v[i j] to x[i ids[i j]]. ids and v
// have one shape, with at most as many elements as x along each other axis. The axis is the
// first, or that of Along in the options. Indices count as in [Batch.Scatter], and equal
// ones are applied in the order of v.
//
// Execute or Compile returns [op.ErrShape] for other shapes.
func (b *Batch) ScatterAlong(x, ids, v Value, opts ...op.ScatterOpts) Value {
	o, err := op.OptionOf(opts)
	var places Value
	if err == nil && !v.Shape().Equal(ids.Shape()) {
		err = fmt.Errorf("%d ids of shape %v for elements of shape %v: expected equal shapes: %w", extent(ids.Shape()), ids.Shape(), v.Shape(), device.ErrShape)
	}
	if err == nil {
		axis := 0
		if o.Along != (op.Along{}) {
			axis, err = oneAxis(x, 0, []op.Along{o.Along})
		}
		if err == nil {
			places, err = b.placesAlong(x, ids, axis)
		}
	}
	if err != nil {
		return b.failOp(op.Scatter, err, []Value{x, ids, v})
	}
	y := b.Scatter(b.Reshape(x, -1), b.Reshape(places, -1), b.Reshape(v, -1), op.ScatterOpts{Reduce: o.Reduce})
	return b.Reshape(y, x.Shape()...)
}

// ScatterND writes parts of v to x at indices of several axes. It is the opposite of
// [Batch.GatherND]: x [a1... ak b...], ids [s... k] and v [s... b...]. Indices count as in
// [Batch.Scatter], and equal ones are applied in the order of v. Along of the options is
// not used.
//
// Execute or Compile returns [op.ErrShape] for other shapes.
func (b *Batch) ScatterND(x, ids, v Value, opts ...op.ScatterOpts) Value {
	o, err := op.OptionOf(opts)
	if err == nil && o.Along != (op.Along{}) {
		err = fmt.Errorf("ScatterND indexes all axes: leave out the option Along: %w", device.ErrShape)
	}
	if err != nil {
		return b.failOp(op.Scatter, err, []Value{x, ids, v})
	}
	places, rows, err := b.placesND(x, ids)
	if err != nil {
		return b.failOp(op.Scatter, err, []Value{x, ids, v})
	}
	return b.Reshape(b.Scatter(rows, places, v, op.ScatterOpts{Reduce: o.Reduce}), slices.Clone(x.Shape())...)
}
