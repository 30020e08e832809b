//go:build !js || !nowebgpu

package device

import (
	"context"
	"math"
	"sync"

	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/internal/fmt"
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

// mixed has the results of the mixture, for the operands that mixedOperands returns. The result at
// mixedNaN is NaN. Pages do not compute them, because they would load the float64 reference.
var mixed = [knownLength]float32{
	14.78167, 12.38126, 12.56177, 9.653149, 15.283, math.MaxFloat32, 25.42184, 13.46324, 20.36131, 26.75949,
	39.38316, 49.11356, 62.62167, -1.757888, 18.10345, 16.01115, 13.67461, 12.41879, 18.86431, 25.3056,
	21.67368, 18.43767, 21.54219, 30.65462, 45.74934, 58.96949, -0.4991318, 3.81389, 21.21251, 16.45731,
	15.19025, 16.5001, 26.15343, 20.32827, 31.8981, 19.09772, 24.77066, 35.7708, 56.10528, 0.8486955,
	4.84348, 9.172944, 27.13784, 23.30628, 24.02156, 30.28921, 26.09276, 36.32353, 43.80816, 21.80535,
	29.22018, 44.87674, -4.015518, 6.107974, 9.973367, 11.34828, 27.46598, 25.47093, 30.56067, 23.72855,
	36.00469, 42.00441, 51.76579, 25.73404, 37.65944, -64.96993, 1.74376,
}

const mixedNaN = 5

// mixedOperands returns operands of the mixture.
func mixedOperands() (x, y []float32) {
	x, y = small(13), small(7)
	x[mixedNaN], x[knownLength-2] = float32(math.NaN()), -20.5
	return x, y
}

// knownElements tests the mixture.
func knownElements(ctx context.Context, e *engine.Engine) error {
	x, y := mixedOperands()
	got := make([]float32, knownLength)
	for i := range got {
		if i != mixedNaN {
			got[i] = float32(math.NaN())
		}
	}
	o := mixture()
	if err := e.Elementwise(ctx, o, &op.Attrs{}, got, x, y, nil); err != nil {
		return err
	}
	for i, v := range got {
		if i == mixedNaN && v == v {
			return fmt.Errorf("elementwise functions of %v and %v gave %v, not NaN", x[i], y[i], v)
		}
		if off := math.Abs(float64(v) - float64(mixed[i])); i != mixedNaN && !(off <= knownWithin) {
			return fmt.Errorf("elementwise functions of %v and %v gave %v, not %v", x[i], y[i], v, mixed[i])
		}
	}
	return nil
}
