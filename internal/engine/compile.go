package engine

import (
	"context"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/ir"
)

// CompileKernel compiles a kernel in advance, so that errors are reported early and the first
// launch does not wait.
func (e *Engine) CompileKernel(ctx context.Context, p *ir.Program) (err error) {
	defer guard(&err)
	if err := e.alive(ctx); err != nil {
		return err
	}
	if !e.enter() {
		return e.Err()
	}
	defer e.exit()
	if c, ok := e.dev.(driver.Compiler); ok {
		return c.Compile(ctx, p)
	}
	return nil
}
