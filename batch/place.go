package batch

import (
	"fmt"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// The methods of this file work at a place that is a value, one i32 that is bound
// when the batch runs: a plan that is kept serves every place.
//
//	pos := batch.Upload(b, []int32{0})
//	b.StoreAt(cache, 0, pos, row)
//	plan, err := b.Compile(ctx)
//	err = plan.Run(ctx, batch.Set(pos, []int32{17}))

// SliceAt returns n elements of one axis of x from a place on: at is one i32. A
// place from which on there are not n elements is moved to the nearest one. An
// axis below 0 counts from the end.
//
// More elements than x has are [op.ErrShape], which Execute or Compile returns.
// docs/OPS.md#slice_at.
func (b *Batch) SliceAt(x Value, axis int, at Value, n int) Value {
	return b.apply(op.SliceAt, op.SliceAtOf(axis, n), x, at)
}

// Update returns x with v in the place of the elements of one axis from a place
// on: at is one i32, and v has the extents of x but for the axis. Elements of v
// that come before the first or behind the last of x are dropped. An axis below 0
// counts from the end.
//
// Other extents are [op.ErrShape], which Execute or Compile returns.
// docs/OPS.md#update.
func (b *Batch) Update(x Value, axis int, at, v Value) Value {
	return b.apply(op.Update, op.UpdateOf(axis), x, at, v)
}

// StoreAt records that v is written into buf along an axis from a place on: at is
// one i32, and v has the extents of buf but for the axis. Elements of v that come
// before the first or behind the last of buf are dropped. Nothing else of buf is
// moved where the elements are of a type that the device keeps in memory as it
// is. Stores happen in the order in which they are recorded, and always.
//
// Other extents are [op.ErrShape], which Execute or Compile returns.
func (b *Batch) StoreAt(buf *device.Buffer, axis int, at, v Value) {
	x := b.Use(buf)
	if b.err == nil && b.own(v) && v.Type() != buf.Type() {
		b.fail(fmt.Errorf("store of %v into a buffer of %v: %w", v.Type(), buf.Type(), device.ErrUnsupported))
		return
	}
	y := b.Update(x, axis, at, v)
	if b.err == nil {
		b.Store(buf, 0, y)
	}
}
