package driver

import (
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/op"
)

// Valid returns an error for a step that no device runs: it is empty, an
// elementwise operation that is not in a program, or has not one shape for each
// operand and each result.
func (s *Step) Valid() error {
	switch {
	case s.Kernel != nil:
	case s.Op == nil && s.Post == nil:
		return fmt.Errorf("empty step: %w", ErrUnsupported)
	case s.Op == nil:
	case s.Op.Class() == op.Elementwise:
		return fmt.Errorf("elementwise, but not as a program: %w", ErrUnsupported)
	case len(s.Dims) != len(s.In)+s.Op.Results():
		return fmt.Errorf("%d shapes of %d operands and %d results: %w", len(s.Dims), len(s.In), s.Op.Results(), ErrShape)
	}
	return nil
}

// Results returns the types that Op makes of the operands, and the shapes of Out.
func (s *Step) Results() (types []op.DType, shapes []op.Shape, err error) {
	in := make([]op.DType, len(s.In))
	for i, x := range s.In {
		if x.Slot >= 0 {
			in[i] = x.Type
		}
	}
	if types, err = s.Op.Types(&s.Attrs, in); err != nil {
		return nil, nil, err
	}
	dims := s.Dims[len(s.In):]
	for i, o := range s.Out {
		if s.Post != nil {
			shapes = append(shapes, Present(dims[0]))
			continue
		}
		shapes = append(shapes, Present(dims[i]))
		if i < len(types) && o.Type != types[i] {
			return nil, nil, fmt.Errorf("result %d of type %v, not %v: %w", i, o.Type, types[i], ErrUnsupported)
		}
	}
	return types, shapes, nil
}

// Reshapes reports whether all that a step does is to copy its operand.
func (s *Step) Reshapes() bool {
	return s.Op == op.Reshape && s.Post == nil && s.In[0].Slot >= 0 && s.In[0].Type == s.Out[0].Type
}

// Present returns an empty shape for nil, which is the shape of an absent array.
func Present(s op.Shape) op.Shape {
	if s == nil {
		return op.Shape{}
	}
	return s
}

// Once reports whether a program reads each element of its operands once.
func (f *Fused) Once() bool {
	for _, x := range f.In {
		if x.Broadcast != op.Full && x.Broadcast != op.Scalar {
			return false
		}
	}
	return true
}
