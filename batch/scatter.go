package batch

import (
	"fmt"
	"slices"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// Scatter returns x with elements of v at the places of one axis that ids names, the
// opposite of [Batch.Gather]: x [a... n b...], ids of i32 of shape s, v [a... s... b...].
// The zero options set rows; Reduce adds, multiplies, or takes the least or the greatest:
//
//	b.Scatter(x, ids, rows)                                     // x[ids] = rows
//	b.Scatter(x, ids, rows, op.ScatterOpts{Reduce: op.ScatterAdd}) // torch.index_add
//
// Ids from -n to -1 count from the end, and what other ids outside name is dropped. Where
// several ids are the same, their elements are taken in the order of v: a set keeps the
// last, and sums are the same bits in every run. Nothing of x is copied where it is used
// for the last time.
//
// Other shapes are [op.ErrShape], other types of v [op.ErrUnsupported], which Execute or
// Compile returns. docs/OPS.md#scatter.
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

// ScatterAlong returns x with each element of v at its own place but for one axis, where
// its index says where: ids and v have one shape, as many elements as x along the other
// axes or fewer. It is the opposite of [Batch.TakeAlong]; as torch.scatter, or
// torch.scatter_reduce with Reduce. The axis is the first, or Along of the options.
//
// Indices and duplicates are those of [Batch.Scatter], the order that of v.
//
// Other shapes are [op.ErrShape], which Execute or Compile returns.
func (b *Batch) ScatterAlong(x, ids, v Value, opts ...op.ScatterOpts) Value {
	o, err := op.OptionOf(opts)
	var places Value
	if err == nil && !v.Shape().Equal(ids.Shape()) {
		err = fmt.Errorf("%d ids of shape %v for elements of shape %v: %w", extent(ids.Shape()), ids.Shape(), v.Shape(), device.ErrShape)
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

// ScatterND returns x with parts of v at the places that the last axis of ids names: the
// opposite of [Batch.GatherND], with x [a1... ak b...], ids [s... k] and v [s... b...]. Along
// of the options is not used.
//
// Indices and duplicates are those of [Batch.Scatter].
//
// Other shapes are [op.ErrShape], which Execute or Compile returns.
func (b *Batch) ScatterND(x, ids, v Value, opts ...op.ScatterOpts) Value {
	o, err := op.OptionOf(opts)
	if err == nil && o.Along != (op.Along{}) {
		err = fmt.Errorf("places of all axes, along some: leave Along out: %w", device.ErrShape)
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
