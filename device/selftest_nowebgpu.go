//go:build js && nowebgpu

package device

import (
	"context"

	"github.com/rayo-go/rayo/internal/engine"
)

// useOperations links what operations need that are not elementwise.
func useOperations() {
	engine.UseSelfTests()
	useGraphs()
}

// useGraphs links what graphs need that are not one elementwise operation.
func useGraphs() { engine.UsePlanner() }

// knownElements serves devices other than the CPU, which such a page does not have.
func knownElements(context.Context, *engine.Engine) error { return ErrUnsupported }
