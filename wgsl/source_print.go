package wgsl

import (
	"strings"
	"sync"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/op"
)

// featureNames are the names of the features, in the order of their bits.
var featureNames = [...]string{"half floats", "subgroups"}

// textPrinter is printText once [Source] has made a program, so that pages without texts do not load it.
var (
	textPrinter     func(p *ir.Program, t *Target) (Shader, error)
	textPrinterMade sync.Once
)

func useTexts() { textPrinter = printText }

// printText is printProgram for the text of a user. It adds nothing to the text, and checks that
// the target has the features that the text needs.
func printText(p *ir.Program, t *Target) (Shader, error) {
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

// directives adds or removes the directive that enables subgroups, as the consumer requires: naga
// supports subgroups without the directive and rejects it. Line numbers do not change, and columns
// change only in the first line.
func directives(text string, needs Feature, c Consumer) string {
	if needs&Subgroups == 0 {
		return text
	}
	m, err := parse(text)
	if err != nil {
		return text // the compiler reports the error
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
