package batch

import (
	"fmt"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// The methods of this file take an index that is a value: one i32 that is bound when the batch
// runs. So one plan serves every index.
//
//	pos := batch.Upload(b, []int32{0})
//	b.StoreAt(cache, 0, pos, row)
//	plan, err := b.Compile(ctx)
//	err = plan.Run(ctx, batch.BindInput(pos, []int32{17}))

// SliceAt returns n elements of one axis of x, starting at the index at, which is one i32
// operand. If fewer than n elements follow, or at is below 0, it starts at the nearest
// index that fits. An axis below 0 counts from the end.
//
// Execute or Compile returns [op.ErrShape] for an n greater than the extent of x.
// See docs/OPS.md#slice_at.
func (b *Batch) SliceAt(x Value, axis int, at Value, n int) Value {
	return b.apply(op.SliceAt, op.SliceAtOf(axis, n), x, at)
}

// Update returns x with elements of one axis replaced by v, starting at the index at, which
// is one i32 operand. v has the extents of x except along the axis. Elements of v that
// would lie outside x are dropped. An axis below 0 counts from the end.
//
// Execute or Compile returns [op.ErrShape] for other extents. See docs/OPS.md#update.
func (b *Batch) Update(x Value, axis int, at, v Value) Value {
	return b.apply(op.Update, op.UpdateOf(axis), x, at, v)
}

// StoreAt records that v is written into buf along an axis, starting at the index at, which is one
// i32 operand. v has the extents of buf except along the axis. Elements of v that would lie outside
// buf are dropped. If the device stores the element type as it is, only the elements of v are
// written and the rest of buf is not touched. Stores run in the order in which they are recorded,
// even if no operation reads the result.
//
// Execute or Compile returns [op.ErrShape] for other extents.
func (b *Batch) StoreAt(buf *device.Buffer, axis int, at, v Value) {
	x := b.Use(buf)
	if b.err == nil && b.own(v) && v.Type() != buf.Type() {
		b.fail(fmt.Errorf("store of %v into a buffer of %v: Cast the value first: %w", v.Type(), buf.Type(), device.ErrUnsupported))
		return
	}
	y := b.Update(x, axis, at, v)
	if b.err == nil {
		b.Store(buf, 0, y)
	}
}
