package cpu

import (
	"context"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/op"
)

// factorTask computes an operation of linear algebra.
type factorTask struct {
	d       *processor
	f       *driver.Factoring
	in, out []int64 // sizes in bytes
}

func (t *factorTask) configure(o *op.Operation, a *op.Attrs, dims []op.Shape) error {
	var ok bool
	if t.f, ok = driver.FactoringOf(o, a, dims); !ok {
		return driver.ErrUnsupported
	}
	operands, _ := o.Arity()
	for i, s := range dims {
		if n := 4 * int64(size(s)); i < operands {
			t.in = append(t.in, n)
		} else {
			t.out = append(t.out, n)
		}
	}
	return nil
}

func (t *factorTask) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	pool := t.d.pool.Under(ctx)
	t.f.Run(pool, memories(in, t.in), memories(out, t.out))
	pool.Release()
	return ctx.Err()
}
