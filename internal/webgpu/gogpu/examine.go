//go:build !nowebgpu && !goffi_static && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package gogpu

import (
	"fmt"

	"github.com/gogpu/naga/ir"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// examine compares a module with what is said of it.
func examine(s *webgpu.Shader, m *ir.Module) error {
	entry := -1
	for i := range m.EntryPoints {
		if m.EntryPoints[i].Name == s.Entry && m.EntryPoints[i].Stage == ir.StageCompute {
			entry = i
		}
	}
	if entry < 0 {
		return fmt.Errorf("there is no entry point %q for computing", s.Entry)
	}
	return nil
}
