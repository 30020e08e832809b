//go:build !nowebgpu

package device

import (
	"context"

	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/internal/incomparable"
	"github.com/rayo-go/rayo/internal/ir"
)

func init() {
	engine.TestFunctions = func(ctx context.Context, e *engine.Engine) error {
		t := functionTest{ctx: ctx, e: e}
		ir.IfFunctions(&t)
		return t.err
	}
}

// functionTest tests functions on a device, in programs that have them.
type functionTest struct {
	_ incomparable.Type

	ctx context.Context
	e   *engine.Engine
	err error
}

func (t *functionTest) WithFunctions() { t.err = knownFunctions(t.ctx, t.e) }
