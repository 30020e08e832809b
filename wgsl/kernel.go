package wgsl

import (
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/kernel"
)

// Kernel returns k as WGSL for t; the kernel of a [Source] gives its text. Equal kernels and targets give equal
// texts. It returns the mistake in a kernel, and an error that wraps op.ErrUnsupported for a kernel that needs
// more than t has.
func Kernel(k *kernel.Kernel, t Target) (Shader, error) {
	if err := k.Err(); err != nil {
		return Shader{}, err
	}
	p, _ := k.Program()
	s, err := printProgram(p, t)
	s.kernel = k
	return s, err
}

// Position returns the place in the author's Go source that line n of the text, counted from 1,
// comes from, or "" and 0 if the line has no instruction or an unknown position. If the kernel was
// built without positions, it is built again.
func (s *Shader) Position(n int) (file string, line int) {
	v := s.instruction(n)
	if v == 0 {
		return "", 0
	}
	if s.pos == nil && s.kernel != nil {
		if p, err := s.kernel.Positions(); err == nil {
			return ir.Position(p.Pos, v)
		}
	}
	return ir.Position(s.pos, v)
}
