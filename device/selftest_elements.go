//go:build !js || !nowebgpu

package device

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/op"
)

// mixture is one elementwise operation that contains every kind of instruction of expressions:
// arithmetic on bits and integers, to which the functions expand, conversions, comparisons. Each
// term has a different weight, so that two errors do not cancel.
var mixture = sync.OnceValue(func() *op.Operation {
	return op.Binary("self-test", func(x, y op.Expr) op.Expr {
		half, one, two := op.Const(0.5), op.Const(1), op.Const(2)
		terms := []op.Expr{
			x.Max(op.Const(0)),
			x.Sub(y).Min(one).Mul(op.Const(3)),
			op.Select(x.Lt(y), op.Const(5), op.Const(11)),
			op.Select(x.Ge(one), y, op.Const(17)),
			x.Mul(half).Floor().Mul(op.Const(1.25)),
			y.Mul(half).Ceil().Mul(op.Const(1.5)),
			x.Mul(op.Const(0.75)).Round().Mul(op.Const(0.875)),
			y.Mul(op.Const(0.75)).Trunc().Mul(op.Const(0.625)),
			x.Mul(half).Exp().Mul(half),
			x.Square().Add(one).Log().Mul(two),
			y.Tanh().Mul(op.Const(4)),
			x.Sin().Mul(op.Const(2.5)),
			y.Square().Add(two).Sqrt(),
			x.Div(y.Abs().Add(one)).Mul(op.Const(1.75)),
			x.Fma(y, one).Mul(op.Const(0.375)),
		}
		sum := terms[0]
		for _, t := range terms[1:] {
			sum = sum.Add(t)
		}
		return sum
	})
})

// knownWithin is the allowed error of a result of mixture. It is many times the error that its
// functions may have, and much less than the effect of a wrong term.
const knownWithin = 1e-3

// knownElements tests the mixture.
func knownElements(ctx context.Context, e *engine.Engine) error {
	x, y, got := small(13), small(7), small(3)
	for i := range got {
		got[i] = float32(math.NaN())
	}
	x[5], x[knownLength-2] = float32(math.NaN()), -20.5
	o := mixture()
	if err := e.Elementwise(ctx, o, &op.Attrs{}, got, x, y, nil); err != nil {
		return err
	}
	in := []*op.Array{op.NewArray(op.Shape{knownLength}), op.NewArray(op.Shape{knownLength})}
	for i := range x {
		in[0].Data[i], in[1].Data[i] = float64(x[i]), float64(y[i])
	}
	want, err := o.Reference(&op.Attrs{}, in, []op.DType{op.F32, op.F32})
	if err != nil {
		return err
	}
	for i, v := range got {
		w := want[0].Data[i]
		if off := math.Abs(float64(v) - w); !(off <= knownWithin) && !(v != v && w != w) {
			return fmt.Errorf("elementwise functions of %v and %v gave %v, not %v", x[i], y[i], v, w)
		}
	}
	return nil
}
