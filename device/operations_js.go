//go:build !nowebgpu

package device

import (
	"github.com/rayo-go/rayo/internal/driver/webgpu"
	"github.com/rayo-go/rayo/internal/engine"
)

// useOperations links what operations need that are not elementwise.
func useOperations() {
	engine.UseSelfTests()
	useGraphs()
	webgpu.UseOperations()
}

// useGraphs links what graphs need that are not one elementwise operation over float32.
func useGraphs() {
	engine.UsePlanner()
	webgpu.UseGraphs()
}
