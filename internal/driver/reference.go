package driver

import (
	"encoding/binary"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
)

// Reference computes a request without an epilogue on the host, with the float64 reference of its
// operation, which is slow. in are the operands in memory, nil for absent ones, and out is memory
// for the results.
//
// Linear algebra is computed as on the CPU instead, by one thread: its references take
// too long for matrices of any size.
func Reference(r *portable.Request, in, out [][]byte) error {
	var dims []op.Shape
	for _, a := range r.In {
		dims = append(dims, a.Shape)
	}
	for _, y := range r.Out {
		dims = append(dims, y.Shape)
	}
	if f, ok := FactoringOf(r.Op, &r.Attrs, dims); ok {
		f.Run(nil, in, out)
		return nil
	}
	arrays, types := make([]*op.Array, len(r.In)), make([]op.DType, len(r.In))
	for i, a := range r.In {
		if a.Shape == nil {
			continue
		}
		var err error
		if a.Layout == nil {
			arrays[i], err = a.Type.Array(a.Shape, in[i])
		} else if arrays[i], err = a.Type.Array(op.Shape{a.N}, in[i]); err == nil {
			arrays[i] = gathered(arrays[i], &a)
		}
		if err != nil {
			return err
		}
		types[i] = a.Type
	}
	results, err := r.Op.Reference(&r.Attrs, arrays, types)
	if err != nil {
		return err
	}
	for i, y := range r.Out {
		if n := len(results[i].Data); n*y.Type.Size() > len(out[i]) {
			return fmt.Errorf("%d results for %d bytes: %w", n, len(out[i]), op.ErrShape)
		}
		for j, v := range results[i].Data {
			if y.Layout != nil {
				j, _ = y.Layout.At(j)
			}
			y.Type.PutFloat64(out[i], j, v)
		}
	}
	return nil
}

// gathered returns the array that memory shows in the layout of a.
func gathered(memory *op.Array, a *portable.Array) *op.Array {
	bits := binary.NativeEndian.AppendUint32(nil, a.Layout.Fill)
	switch a.Type.Size() {
	case 1:
		bits = []byte{byte(a.Layout.Fill)}
	case 2:
		bits = binary.NativeEndian.AppendUint16(nil, uint16(a.Layout.Fill))
	}
	x := op.NewArray(a.Shape)
	for i := range x.Data {
		x.Data[i] = a.Type.Float64(bits, 0)
		if at, is := a.Layout.At(i); is {
			x.Data[i] = memory.Data[at]
		}
	}
	return x
}
