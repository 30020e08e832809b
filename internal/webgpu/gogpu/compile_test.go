//go:build !nowebgpu && !goffi_static && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package gogpu

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/hosttest"
)

func TestHostile(t *testing.T) {
	hosttest.Survive(t, hosttest.Guarded(t, New, "lavapipe"), hosttest.Hostile(20_000))
}

// TestDeep checks that no text without the guard's limits is nested so deeply, or is so long, that the
// compiler ends the process.
func TestDeep(t *testing.T) {
	refused := []string{
		"parentheses", "open", "minus apart", "not", "blocks", "loops", "sum", "calls", "indices", "complements", "address", "array sizes", "minima",
	}
	for _, n := range []int{10_000, maxText / 8} {
		for name, s := range hosttest.Hostile(n) {
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				_, err := compile(s)
				var mistake *webgpu.CompileError
				if err != nil && !errors.As(err, &mistake) {
					t.Errorf("%v", err)
				}
				if err == nil && slices.Contains(refused, name) {
					t.Error("it compiles")
				}
				t.Logf("%.100v", err)
			})
		}
	}
	for _, name := range refused {
		if hosttest.Hostile(1)[name] == nil {
			t.Errorf("no text is called %s", name)
		}
	}
}

// TestMistakes compiles texts with mistakes that would end the process without a check, and checks the
// SPIR-V for them.
func TestMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		text         string
		line, column int
	}{
		"built-in value":       {"@compute @workgroup_size(1)\nfn main(@builtin(global_invocation_idx) id: vec3u) { y[id.x] = 1u; }", 2, 18},
		"constant of itself":   {"@compute @workgroup_size(1)\nfn main() { const a = a; y[0] = a; }", 2, 23},
		"constant in a module": {"const a = b;\nconst b = a;\n@compute @workgroup_size(1) fn main() { y[0] = a; }", 2, 11},
	} {
		s := shader(c.text)
		_, err := compile(s)
		var mistake *webgpu.CompileError
		if !errors.As(err, &mistake) || mistake.Label != "test" || mistake.Line != c.line+4 || mistake.Column != c.column {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, in := range map[string]instr{
		"no built-in value":      {opVariable, []uint32{3, 10, classInput}},
		"of another type":        {opVariable, []uint32{4, 11, classInput}},
		"of another stage":       {opVariable, []uint32{3, 12, classInput}},
		"another class":          {opVariable, []uint32{3, 11, 3}},
		"no class":               {opVariable, []uint32{3, 11}},
		"a pointer that is none": {opVariable, []uint32{2, 11, classInput}},
	} {
		m := &module{def: map[uint32]instr{}, builtIn: map[uint32]uint32{11: 28, 12: 0}, shader: shader("")}
		m.def[1] = instr{opTypeInt, []uint32{1, 32, 0}}
		m.def[2] = instr{opTypeVector, []uint32{2, 1, 3}}
		m.def[3] = instr{opTypePointer, []uint32{3, classInput, 2}}
		m.def[4] = instr{opTypePointer, []uint32{4, classInput, 1}}
		if err := m.declaration(in); err == nil {
			t.Errorf("%s is accepted", name)
		}
		if err := m.declaration(instr{opVariable, []uint32{3, 11, classInput}}); err != nil {
			t.Error(err)
		}
	}
}
