package wgsl

import (
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/kernel"
)

// Kernel returns k as WGSL for t. For the kernel of a [Source], it returns the text of the source.
// Equal kernels and targets give equal texts. The error is the kernel's own error if it has one,
// and wraps op.ErrUnsupported if the kernel needs more than t has.
func Kernel(k *kernel.Kernel, t Target) (Shader, error) {
	if err := k.Err(); err != nil {
		return Shader{}, err
	}
	p, _ := k.Program()
	s, err := printProgram(p, t)
	s.kernel = k
	return s, err
}

// Position returns the position in the author's Go source from which line n of the text comes; n
// counts from 1. It returns "" and 0 if the line has no instruction or an unknown position. If the
// kernel was built without positions, Position builds it again.
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
