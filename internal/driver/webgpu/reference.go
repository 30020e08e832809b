package webgpu

import (
	"context"
	"errors"
	"fmt"

	gpu "github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/kernel/lib"
	"github.com/rayo-go/rayo/op"
)

// hostStep computes an operation that has no kernel on the host, by its reference
// in float64: right, and slow. A submission then consists of several: what comes
// before it is waited for, and its results go to the device with what comes after.
type hostStep struct {
	lib.Request
	in, out []arrayRef
}

// orReference has a request computed by kernels or, where there are none for the
// operation at all, by the reference.
func (e *preparer) orReference(r *lib.Request, in, out []arrayRef) error {
	err := e.compute(r, in, out)
	if err == nil || !errors.Is(err, errNoKernel) {
		return err
	}
	var all []arrayRef
	for i, a := range r.In {
		if a.Shape != nil {
			all = append(all, in[i])
		}
	}
	e.hosted = append(e.hosted, len(e.steps))
	e.add(&hostStep{*r, in, out}, append(all, out...)...)
	return nil
}

// record does nothing: the step is no command.
func (s *hostStep) record(*recorder) error { return nil }

// downloads returns where the operands come from, into memory of their own.
func (s *hostStep) downloads(r *recorder) []gpu.Transfer {
	var ts []gpu.Transfer
	for i, a := range s.In {
		if a.Shape != nil {
			w := r.locate(s.in[i])
			ts = append(ts, gpu.Transfer{Host: make([]byte, s.in[i].bytes), Buffer: w.Buffer, Off: w.Off})
		}
	}
	return ts
}

// run computes the results from what was downloaded, and returns what is to be
// uploaded.
func (s *hostStep) run(ctx context.Context, r *recorder, from []gpu.Transfer) ([]gpu.Transfer, error) {
	arrays, types := make([]*op.Array, len(s.In)), make([]op.DType, len(s.In))
	for i, a := range s.In {
		if a.Shape == nil {
			continue
		}
		var err error
		if arrays[i], err = a.Type.Array(a.Shape, from[0].Host); err != nil {
			return nil, err
		}
		types[i], from = a.Type, from[1:]
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	results, err := s.Op.Reference(&s.Attrs, arrays, types)
	if err != nil {
		return nil, err
	}
	var ts []gpu.Transfer
	for i, y := range s.Out {
		b := make([]byte, s.out[i].bytes)
		if len(results[i].Data)*y.Type.Size() > len(b) {
			return nil, fmt.Errorf("%d results for %d bytes: %w", len(results[i].Data), len(b), op.ErrShape)
		}
		for j, v := range results[i].Data {
			y.Type.PutFloat64(b, j, v)
		}
		w := r.locate(s.out[i])
		ts = append(ts, gpu.Transfer{Host: b, Buffer: w.Buffer, Off: w.Off})
	}
	return ts, nil
}
