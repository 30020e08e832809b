package cpu

import (
	"context"
	"unsafe"

	"github.com/rayo-go/rayo/op"
)

// referenceCore computes an operation that has no kernel by its reference in
// float64: right, and slow.
type referenceCore struct{ o *opStep }

// configure does nothing: opStep has it all.
func (referenceCore) configure(*op.Operation, *op.Attrs, []op.Shape) error { return nil }

func (c referenceCore) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	arrays := make([]*op.Array, len(in))
	types := make([]op.DType, len(in))
	for i := range c.o.in {
		a := &c.o.in[i]
		if a.absent {
			continue
		}
		types[i] = a.typ
		bytes, err := a.typ.Bytes(c.o.dims[i])
		if err != nil {
			return err
		}
		if arrays[i], err = a.typ.Array(c.o.dims[i], unsafe.Slice((*byte)(in[i]), bytes)); err != nil {
			return err
		}
	}
	results, err := c.o.op.Reference(&c.o.attrs, arrays, types)
	if err != nil {
		return err
	}
	for i := range c.o.out {
		a := &c.o.out[i]
		mem := unsafe.Slice((*byte)(out[i]), a.n*4)
		for j, v := range results[i].Data {
			a.typ.PutFloat64(mem, j, v)
		}
	}
	return ctx.Err()
}
