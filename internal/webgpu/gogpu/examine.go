//go:build !nowebgpu && !goffi_static && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package gogpu

import (
	"errors"
	"fmt"

	"github.com/gogpu/naga/ir"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// examine compares a module with its description.
func examine(s *webgpu.Shader, m *ir.Module) error {
	entry := -1
	for i := range m.EntryPoints {
		if m.EntryPoints[i].Name == s.Entry && m.EntryPoints[i].Stage == ir.StageCompute {
			entry = i
		}
	}
	if entry < 0 {
		return fmt.Errorf("there is no compute entry point %q", s.Entry)
	}
	if s.Trusted {
		return nil
	}
	for i := range m.Functions {
		if err := builtIns(&m.Functions[i]); err != nil {
			return err
		}
	}
	return builtIns(&m.EntryPoints[entry].Function)
}

// builtIns rejects functions that the compiler translates incorrectly, if the generated code cannot
// be distinguished from the code of other functions.
func builtIns(f *ir.Function) error {
	for _, e := range f.Expressions {
		if m, ok := e.Kind.(ir.ExprMath); ok {
			switch m.Fun {
			case ir.MathCountLeadingZeros:
				return errors.New("countLeadingZeros is compiled wrongly without cgo: use firstLeadingBit")
			case ir.MathCountTrailingZeros:
				return errors.New("countTrailingZeros is compiled wrongly without cgo: use firstTrailingBit")
			}
		}
	}
	return nil
}
