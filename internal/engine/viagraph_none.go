//go:build js && nowebgpu

package engine

import (
	"context"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/op"
)

// viaGraph serves devices that do not implement [driver.Immediate]. A page without WebGPU has none: the CPU implements it, and
// the engine of the zero Device returns an error. Without calls of the planner, the page does not link it.
func (e *Engine) viaGraph(context.Context, *op.Operation, *op.Attrs, []Host, []Host) error {
	if err := e.Err(); err != nil {
		return err
	}
	return fmt.Errorf("a call of an operation: %w", driver.ErrUnsupported)
}
