//go:build !js || !nowebgpu

package engine

import (
	"context"

	"github.com/rayo-go/rayo/op"
)

// viaGraph runs an operation by a plan and waits. Even if ctx ends, it returns only after the device has stopped using the
// memory.
func (e *Engine) viaGraph(ctx context.Context, o *op.Operation, a *op.Attrs, in, out []Host) error {
	p, refs, outs, err := e.oneNode(ctx, o, a, in, out)
	if err != nil {
		return err
	}
	return p.Run(ctx, refs, outs, nil)
}
