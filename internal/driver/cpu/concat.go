package cpu

import (
	"context"
	"unsafe"

	"github.com/rayo-go/rayo/op"
)

// concatTask puts arrays of 32-bit elements one after the other along an axis.
type concatTask struct {
	d     *processor
	outer int
	rows  []int // elements of each operand between two of the outer extents
	pitch int   // their sum

	// While it runs.
	in   []unsafe.Pointer
	out  unsafe.Pointer
	each int // rows of a part
}

// concatPart is the elements of a part for the workers.
const concatPart = 16 << 10

func (t *concatTask) configure(_ *op.Operation, a *op.Attrs, dims []op.Shape) error {
	in := dims[:len(dims)-1]
	axis, err := op.ConcatOf(a, in)
	if err != nil {
		return err
	}
	t.outer, t.rows, t.pitch = size(in[0][:axis]), nil, 0
	for _, s := range in {
		t.rows = append(t.rows, size(s[axis:]))
		t.pitch += size(s[axis:])
	}
	return nil
}

func (t *concatTask) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	t.in, t.out = in, out[0]
	if t.pitch == 0 {
		return nil
	}
	pool := t.d.pool.Under(ctx)
	t.each = max(1, concatPart/t.pitch)
	pool.Spread((t.outer+t.each-1)/t.each, false, t)
	pool.Release()
	t.in, t.out = nil, nil
	return ctx.Err()
}

// Part implements workers.Task.
func (t *concatTask) Part(i int) {
	for r := i * t.each; r < min((i+1)*t.each, t.outer); r++ {
		to := slice(unsafe.Add(t.out, 4*r*t.pitch), t.pitch)
		for k, n := range t.rows {
			copy(to, slice(unsafe.Add(t.in[k], 4*r*n), n))
			to = to[n:]
		}
	}
}
