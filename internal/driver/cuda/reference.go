package cuda

import (
	"errors"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/internal/ptxgen"
	"github.com/rayo-go/rayo/op"
)

// referenceStep computes an operation that has no kernel on the host, by its
// reference: see [driver.Reference].
type referenceStep struct {
	portable.Request
	in, out []arrayRef
}

// orReference computes a request with kernels of the portable library or, if the operation has no
// kernels, with the reference.
func (e *preparer) orReference(r *request) error {
	err := e.plan(r, ptxgen.Options{})
	if err == nil || !errors.Is(err, op.ErrUnsupported) {
		return err
	}
	e.direct = false
	e.steps = append(e.steps, &referenceStep{r.Request, r.From, r.To})
	return nil
}

func (s *referenceStep) enqueue(r *run) error {
	in, out := make([][]byte, len(s.In)), make([][]byte, len(s.Out))
	for i, a := range s.In {
		if a.Shape == nil {
			continue
		}
		in[i] = make([]byte, s.in[i].bytes)
		if err := r.hw.Download(in[i], r.address(s.in[i].place)); err != nil {
			return err
		}
	}
	for i, y := range s.out {
		out[i] = make([]byte, y.bytes)
	}
	if err := driver.Reference(&s.Request, in, out); err != nil {
		return err
	}
	for i, y := range s.out {
		if err := r.hw.Upload(r.address(y.place), out[i]); err != nil {
			return err
		}
	}
	return nil
}

// calls returns 0, because the host takes part.
func (s *referenceStep) calls() int { return 0 }
