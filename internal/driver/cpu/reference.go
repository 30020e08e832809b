package cpu

import (
	"context"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
)

// referenceCore computes an operation that has no kernel by its reference: see
// [driver.Reference].
type referenceCore struct {
	r       *portable.Request
	in, out []int64 // sizes in bytes
}

// configure does nothing: opStep has all data.
func (*referenceCore) configure(*op.Operation, *op.Attrs, []op.Shape) error { return nil }

func (c *referenceCore) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	if err := driver.Reference(c.r, memories(in, c.in), memories(out, c.out)); err != nil {
		return err
	}
	return ctx.Err()
}

func memories(at []unsafe.Pointer, bytes []int64) [][]byte {
	ms := make([][]byte, len(at))
	for i, p := range at {
		ms[i] = unsafe.Slice((*byte)(p), bytes[i])
	}
	return ms
}

// request returns the operation as a request of the portable library, and the sizes of its operands
// and results in bytes.
func (o *opStep) request() (r *portable.Request, in, out []int64, err error) {
	r = &portable.Request{Op: o.op, Attrs: o.attrs, Target: portableTarget, Tuning: o.d.tuned()}
	for i := range o.in {
		a, bytes := &o.in[i], 0
		array := portable.Array{}
		if !a.absent {
			array = portable.Array{Type: a.typ, Shape: driver.Present(o.dims[i])}
			if bytes, err = a.typ.Bytes(array.Shape); err != nil {
				return nil, nil, nil, err
			}
			if a.layout != nil {
				array.Layout, array.N, bytes = a.layout, a.memory, 4*a.memory
			}
		}
		r.In, in = append(r.In, array), append(in, int64(bytes))
	}
	for i := range o.out {
		a := &o.out[i]
		array := portable.Array{Type: a.typ, Shape: driver.Present(o.dims[len(o.in)+i])}
		if a.layout != nil {
			array.Layout, array.N = a.layout, a.memory
		}
		r.Out, out = append(r.Out, array), append(out, int64(a.n)*4)
	}
	return r, in, out, nil
}
