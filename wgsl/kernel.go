package wgsl

import (
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/kernel"
)

// Kernel returns k as WGSL for t: see [Print]. A mistake in the kernel gives
// its error.
func Kernel(k *kernel.Kernel, t Target) (Shader, error) {
	p, err := k.Program()
	if err != nil {
		return Shader{}, err
	}
	s, err := printVerified(p, t) // the builder sees to it that it is well formed
	if err == nil {
		s.positions = func() []uintptr {
			p, err := k.Positions()
			if err != nil {
				return nil
			}
			return p.Pos
		}
	}
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
	if s.pos == nil && s.positions != nil {
		return ir.Position(s.positions(), v)
	}
	return ir.Position(s.pos, v)
}
