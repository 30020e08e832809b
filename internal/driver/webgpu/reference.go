package webgpu

import (
	"context"
	"errors"
	"slices"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/portable"
	gpu "github.com/rayo-go/rayo/internal/webgpu"
)

// hostStep computes an operation that has no kernel on the host, by its reference: see
// [driver.Reference]. A submission then consists of several parts: the host waits for the part
// before the step, and uploads the step's results with the part after it.
type hostStep struct {
	portable.Request
	in, out []arrayRef
}

// orReference computes a request with kernels or, if the operation has no kernels, with the
// reference.
func (e *preparer) orReference(r *request) error {
	steps := len(e.steps)
	err := e.compute(&r.Request, r.From, r.To)
	if err == nil || !errors.Is(err, errNoKernel) {
		return err
	}
	e.steps = e.steps[:steps]
	// Uploads have whole words: other arrays are copied to temporary memory first.
	to := slices.Clone(r.To)
	for i, y := range to {
		if y.kind == external && y.bytes%4 != 0 {
			to[i] = e.Reserve(y.bytes)
		}
	}
	var all []arrayRef
	for i, a := range r.In {
		if a.Shape != nil {
			all = append(all, r.From[i])
		}
	}
	e.hosted = append(e.hosted, len(e.steps))
	e.add(&hostStep{r.Request, r.From, to}, append(all, to...)...)
	for i, y := range r.To {
		if to[i] != y {
			if err := e.copy(y, to[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// record does nothing, because the step needs no command.
func (s *hostStep) record(*recorder) error { return nil }

// downloads returns transfers of the operands to new host memory.
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

// run computes the results from the downloaded operands, and returns the data to upload.
func (s *hostStep) run(ctx context.Context, r *recorder, from []gpu.Transfer) ([]gpu.Transfer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	in, out := make([][]byte, len(s.In)), make([][]byte, len(s.Out))
	for i, a := range s.In {
		if a.Shape != nil {
			in[i], from = from[0].Host, from[1:]
		}
	}
	var ts []gpu.Transfer
	for i, y := range s.out {
		out[i] = make([]byte, y.bytes)
		w := r.locate(y)
		ts = append(ts, gpu.Transfer{Host: out[i], Buffer: w.Buffer, Off: w.Off})
	}
	return ts, driver.Reference(&s.Request, in, out)
}
