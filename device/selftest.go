package device

import (
	"context"
	"fmt"
	"math"

	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/op"
)

// selfTest computes a few known answers before a device is offered: a driver
// or compiler that is broken, and there are such, must not give wrong results
// silently. It closes the engine if it fails. The operands are small integers,
// so that every answer is exact in any order of summation.
func selfTest(ctx context.Context, e *engine.Engine) error {
	if err := knownAnswers(ctx, e); err != nil {
		e.Close()
		return fmt.Errorf("self-test of %s: %w", e.Name(), err)
	}
	return nil
}

func knownAnswers(ctx context.Context, e *engine.Engine) error {
	const n = 67 // not a multiple of any vector
	var x, y, got [n]float32
	for i := range x {
		x[i], y[i] = float32(i%13-6), float32(i%7-3)
		got[i] = float32(math.NaN())
	}
	x[5] = float32(math.NaN())
	if err := e.Elementwise(ctx, op.Relu, &op.Attrs{}, got[:], x[:], nil, nil); err != nil {
		return err
	}
	for i, v := range got {
		if want := max(x[i], 0); v != want && !(v != v && want != want) {
			return fmt.Errorf("relu(%v) gave %v", x[i], v)
		}
	}
	x[5] = 2
	bits, err := e.Reduce(ctx, op.Dot, &op.Attrs{}, x[:], y[:])
	if err != nil {
		return err
	}
	want := float32(0)
	for i := range x {
		want += x[i] * y[i]
	}
	if v := math.Float32frombits(bits); v != want {
		return fmt.Errorf("a dot product gave %v, not %v", v, want)
	}
	const m, k, c = 5, 9, 7
	var prod [m * c]float32
	in := []engine.Host{f32(x[:m*k], op.Shape{m, k}), f32(y[:k*c], op.Shape{k, c})}
	if err := e.Call(ctx, op.MatMul, &op.Attrs{}, in, []engine.Host{f32(prod[:], op.Shape{m, c})}); err != nil {
		return err
	}
	for i := range prod {
		want := float32(0)
		for j := range k {
			want += x[i/c*k+j] * y[j*c+i%c]
		}
		if prod[i] != want {
			return fmt.Errorf("element %d of a product gave %v, not %v", i, prod[i], want)
		}
	}
	return nil
}
