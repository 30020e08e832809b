package cuda

import (
	"errors"
	"fmt"

	"github.com/rayo-go/rayo/kernel/lib"
	"github.com/rayo-go/rayo/op"
)

// referenceStep computes an operation that has no kernel on the host, by its
// reference in float64: right, and slow.
type referenceStep struct {
	lib.Request
	in, out []arrayRef
}

// orReference calls plan, and where there is no kernel for the operation at all
// has the reference compute it.
func (e *preparer) orReference(r *lib.Request, in, out []arrayRef, plan func() error) error {
	err := plan()
	if err == nil || !errors.Is(err, op.ErrUnsupported) {
		return err
	}
	e.direct = false
	e.steps = append(e.steps, &referenceStep{*r, in, out})
	return nil
}

func (s *referenceStep) enqueue(r *run) error {
	hw := r.hw
	arrays, types := make([]*op.Array, len(s.In)), make([]op.DType, len(s.In))
	for i, a := range s.In {
		if a.Shape == nil {
			continue
		}
		b := make([]byte, s.in[i].bytes)
		if err := hw.Download(b, r.address(s.in[i].place)); err != nil {
			return err
		}
		var err error
		if arrays[i], err = a.Type.Array(a.Shape, b); err != nil {
			return err
		}
		types[i] = a.Type
	}
	results, err := s.Op.Reference(&s.Attrs, arrays, types)
	if err != nil {
		return err
	}
	for i, y := range s.Out {
		b := make([]byte, s.out[i].bytes)
		if len(results[i].Data)*y.Type.Size() > len(b) {
			return fmt.Errorf("%d results for %d bytes: %w", len(results[i].Data), len(b), op.ErrShape)
		}
		for j, v := range results[i].Data {
			y.Type.PutFloat64(b, j, v)
		}
		if err := hw.Upload(r.address(s.out[i].place), b); err != nil {
			return err
		}
	}
	return nil
}

// calls is 0: the host takes part.
func (s *referenceStep) calls() int { return 0 }
