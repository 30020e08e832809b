package wgsl

import (
	"fmt"
	"strings"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/op"
)

// featureNames are the names of features, by the number of their bit.
var featureNames = [...]string{"half floats", "subgroups"}

// printText is printProgram for a program that is a user's text: it adds nothing, and checks the text
// against the features of the target.
func printText(p *ir.Program, t *Target) (Shader, error) {
	if p.Text.Language != ir.WGSL {
		return Shader{}, fmt.Errorf("wgsl: %s is a text of %v: %w", p.Name, p.Text.Language, op.ErrUnsupported)
	}
	if err := t.allows(p); err != nil {
		return Shader{}, err
	}
	needs := Feature(p.Text.Features)
	for f, name := range featureNames {
		if f := Feature(1) << f; needs&f != 0 && !t.has(f) {
			return Shader{}, fmt.Errorf("wgsl: %s uses %s, which the device lacks: %w", p.Name, name, op.ErrUnsupported)
		}
	}
	s := Shader{Text: directives(p.Text.Source, needs, t.Consumer), Entry: p.Text.Entry, Params: -1, ParamBytes: int(p.Text.ParamBytes), Local: p.Local,
		SharedBytes: uint32(p.Text.SharedBytes), Needs: needs, Bindings: make([]Access, len(p.Bindings))}
	if s.ParamBytes > 0 {
		s.Params = len(p.Bindings)
		for _, b := range p.Text.Blocks {
			s.Blocks = append(s.Blocks, Block(b))
		}
	}
	for i := range p.Bindings {
		s.Bindings[i] = accessOf(&p.Bindings[i])
	}
	return s, nil
}

// directives returns a text with the directives that a consumer wants: naga supports subgroups
// without a directive and rejects the directive. Line numbers do not change, nor do columns except
// in the first line.
func directives(text string, needs Feature, c Consumer) string {
	if needs&Subgroups == 0 {
		return text
	}
	m, err := parse(text)
	if err != nil {
		return text // for the compiler to say
	}
	b, asked := []byte(text), false
	blank := func(i int) { copy(b[m.toks[i].at:], strings.Repeat(" ", len(m.toks[i].text))) }
	for _, e := range m.enables {
		for i := e.lo; i < e.hi; i++ {
			if !m.toks[i].is("subgroups") {
				continue
			}
			asked = true
			switch {
			case c == Tint:
			case len(e.names) == 1:
				for j := e.lo; j <= e.hi; j++ {
					blank(j)
				}
			case m.toks[i+1].is(","):
				blank(i)
				blank(i + 1)
			default:
				blank(i)
				blank(i - 1)
			}
		}
	}
	if c == Tint && !asked {
		return "enable subgroups; " + text
	}
	return string(b)
}
