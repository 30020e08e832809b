//go:build !js

package device

import (
	"context"
	"fmt"
	"math"

	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/op"
)

// openTests are the tests of a device before Open returns it.
var openTests = []func(context.Context, *engine.Engine) error{knownElements, knownFunctions, knownSum, knownProduct}

// knownSum tests a reduction.
func knownSum(ctx context.Context, e *engine.Engine) error {
	x, y := small(13), small(7)
	bits, err := e.Reduce(ctx, op.Dot, &op.Attrs{}, x, y)
	if err != nil {
		return err
	}
	want := float32(0)
	for i := range x {
		want += x[i] * y[i]
	}
	if v := math.Float32frombits(bits); v != want {
		return fmt.Errorf("a dot product gave %v, not %v: %w", v, want, engine.ErrWrong)
	}
	return nil
}

// knownProduct tests a product of matrices.
func knownProduct(ctx context.Context, e *engine.Engine) error {
	const m, k, c = 5, 9, 7
	x, y := small(13), small(7)
	prod := make([]float32, m*c)
	in := []engine.Host{f32(x[:m*k], op.Shape{m, k}), f32(y[:k*c], op.Shape{k, c})}
	if err := e.Call(ctx, op.MatMul, &op.Attrs{}, in, []engine.Host{f32(prod, op.Shape{m, c})}); err != nil {
		return err
	}
	for i := range prod {
		want := float32(0)
		for j := range k {
			want += x[i/c*k+j] * y[j*c+i%c]
		}
		if prod[i] != want {
			return fmt.Errorf("element %d of a product gave %v, not %v: %w", i, prod[i], want, engine.ErrWrong)
		}
	}
	return nil
}
