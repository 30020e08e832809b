package cpu

import (
	"context"
	"unsafe"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// A cumsumTask computes the running sums of rows.
type cumsumTask struct {
	d          *processor
	rows, cols int
}

// choose implements [chooser].
func (t *cumsumTask) choose(o *opStep) core {
	if c := o.columnScan(); c != nil || o.in[0].typ.Float() {
		return c
	}
	return &scanTask{d: t.d}
}

// configure implements core.
func (t *cumsumTask) configure(_ *op.Operation, _ *op.Attrs, dims []op.Shape) error {
	t.rows, t.cols = dims[0].Rows()
	return nil
}

// compute implements core.
func (t *cumsumTask) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	n := t.rows * t.cols
	pool := t.d.pool.Under(ctx)
	simd.Cumsum(pool, slice(out[0], n), slice(in[0], n), t.rows, t.cols)
	pool.Release()
	return ctx.Err()
}
