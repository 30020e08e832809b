package cpu

import (
	"context"
	"unsafe"

	"github.com/rayo-go/rayo/op"
)

// iotaTask stores consecutive numbers from a start on.
type iotaTask struct {
	d *processor
	n int

	// Set during a run.
	start uint32
	out   []uint32
}

// iotaPart is the number of elements in a part for the workers.
const iotaPart = 16 << 10

func (t *iotaTask) configure(_ *op.Operation, a *op.Attrs, _ []op.Shape) error {
	t.n = a.I[0]
	return nil
}

func (t *iotaTask) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	if t.n == 0 {
		return nil
	}
	t.start, t.out = *(*uint32)(in[0]), unsafe.Slice((*uint32)(out[0]), t.n)
	pool := t.d.pool.Under(ctx)
	pool.Spread((t.n+iotaPart-1)/iotaPart, false, t)
	pool.Release()
	t.out = nil
	return ctx.Err()
}

// Part implements workers.Task.
func (t *iotaTask) Part(i int) {
	from := i * iotaPart
	part := t.out[from:min(from+iotaPart, t.n)]
	for k := range part {
		part[k] = t.start + uint32(from+k)
	}
}
