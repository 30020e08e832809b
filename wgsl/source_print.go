package wgsl

import (
	"fmt"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/op"
)

// printText is Print for a program that is a text of a user: nothing is added to
// it, and it is checked against what the target has.
func printText(p *ir.Program, t *Target) (Shader, error) {
	if p.Text.Language != ir.WGSL {
		return Shader{}, fmt.Errorf("wgsl: %s is a text of %v: %w", p.Name, p.Text.Language, op.ErrUnsupported)
	}
	if err := t.allows(p); err != nil {
		return Shader{}, err
	}
	needs := Feature(p.Text.Features)
	for f, name := range map[Feature]string{Half: "half floats", Subgroups: "subgroups"} {
		if needs&f != 0 && !t.has(f) {
			return Shader{}, fmt.Errorf("wgsl: %s uses %s, which the device lacks: %w", p.Name, name, op.ErrUnsupported)
		}
	}
	s := Shader{Text: p.Text.Source, Entry: p.Text.Entry, Params: -1, ParamBytes: int(p.Text.ParamBytes), Local: p.Local,
		SharedBytes: uint32(p.Text.SharedBytes), Needs: needs, Bindings: make([]Access, len(p.Bindings))}
	if s.ParamBytes > 0 {
		s.Params = len(p.Bindings)
	}
	for i := range p.Bindings {
		s.Bindings[i] = accessOf(&p.Bindings[i])
	}
	return s, nil
}
