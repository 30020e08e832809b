//go:build !nowebgpu

package device

import (
	"github.com/rayo-go/rayo/internal/driver/webgpu"
	"github.com/rayo-go/rayo/internal/engine"
)

// useOperations links what operations need that are not elementwise.
func useOperations() {
	engine.UseSelfTests()
	engine.UsePasses()
	webgpu.UseOperations()
}
