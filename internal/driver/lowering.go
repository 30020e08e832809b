package driver

import "errors"

// Lowering is how a device adds the launches of a step: the functions of its preparer, and the
// arrays that its kernels take.
type Lowering[A any] struct {
	Arrays[A]
	// Mark returns a function that removes everything that was added after the call of Mark.
	Mark func() (undo func())
	// Kernel adds the launches of a request with an epilogue. If no kernel computes the request, the
	// error wraps [ErrUnsupported].
	Kernel func(r *Request[A]) error
	// Alone is Kernel for an operation without an epilogue, which may have other ways to be computed.
	Alone func(r *Request[A]) error
	// Program adds an elementwise program, whose first operand is at first.
	Program func(f *Fused, first *A, out []Operand) error
}

// Operation adds the operation of a step, which is in r, and the step's epilogue: in the same kernel
// if there is one, or else as a program behind it.
func (l *Lowering[A]) Operation(r *Request[A], s *Step) error {
	if s.Post == nil {
		if err := l.Alone(r); err != nil {
			return err
		}
		return r.Narrow(l)
	}
	undo := l.Mark()
	with, err := r.With(l, s.Post)
	if err != nil {
		return err
	}
	if err := l.Kernel(with); err == nil {
		return with.Narrow(l)
	} else if !errors.Is(err, ErrUnsupported) {
		return err
	}
	undo()
	unfused, post, err := r.Unfused(l, s.Post)
	if err != nil {
		return err
	}
	if err := l.Alone(unfused); err != nil {
		return err
	}
	return l.Program(post, &unfused.To[0], s.Out)
}

// MaxParams is the maximum number of parameters of an elementwise program that are operands instead
// of constants: each operand is a load, and constants make the functions that use them shorter. A
// program with more parameters is unlikely to be used with other values.
const MaxParams = 4
