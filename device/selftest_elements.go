//go:build !js || !nowebgpu

package device

import (
	"context"
	"math"

	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/op"
)

// A mixture is one elementwise operation that contains many kinds of instructions of expressions. Each term has
// a different weight, so that two errors do not cancel.
type mixture struct {
	operation *op.Operation
	results   *[knownLength]float32 // for the operands that mixedOperands returns; NaN at mixedNaN
}

// sum returns the sum of the terms.
func sum(terms ...op.Expr) op.Expr {
	s := terms[0]
	for _, t := range terms[1:] {
		s = s.Add(t)
	}
	return s
}

// plainMixture returns one of arithmetic, conversions and comparisons.
func plainMixture() mixture {
	return mixture{op.Binary("self-test", func(x, y op.Expr) op.Expr {
		half, one := op.Const(0.5), op.Const(1)
		return sum(
			x.Max(op.Const(0)),
			x.Sub(y).Min(one).Mul(op.Const(3)),
			op.Select(x.Lt(y), op.Const(5), op.Const(11)),
			op.Select(x.Ge(one), y, op.Const(17)),
			x.Mul(half).Floor().Mul(op.Const(1.25)),
			y.Mul(half).Ceil().Mul(op.Const(1.5)),
			x.Mul(op.Const(0.75)).Round().Mul(op.Const(0.875)),
			y.Mul(op.Const(0.75)).Trunc().Mul(op.Const(0.625)),
			y.Square().Add(op.Const(2)).Sqrt(),
			x.Div(y.Abs().Add(one)).Mul(op.Const(1.75)),
			x.Fma(y, one).Mul(op.Const(0.375)),
		)
	}), &plainMixed}
}

// functionMixture returns one of functions, which expand to arithmetic on bits and integers.
func functionMixture() mixture {
	return mixture{op.Binary("self-test of functions", func(x, y op.Expr) op.Expr {
		half := op.Const(0.5)
		return sum(
			x.Mul(half).Exp().Mul(half),
			x.Square().Add(op.Const(1)).Log().Mul(op.Const(2)),
			y.Tanh().Mul(op.Const(4)),
			x.Sin().Mul(op.Const(2.5)),
		)
	}), &functionMixed}
}

// knownWithin is the allowed error of a result of a mixture. It is many times the error that its
// functions may have, and much less than the effect of a wrong term.
const knownWithin = 1e-3

// The results of the mixtures. Pages do not compute them, because they would load the float64 reference.
var (
	plainMixed = [knownLength]float32{
		10.81662, 7.282823, 7.982051, 5.289214, 11.10705, math.MaxFloat32, 20.94162, 13.12912, 17.36616, 22.60705,
		31.91421, 35.85705, 42.19949, -13.68338, 13.12912, 12.24116, 12.35705, 11.28921, 16.23205, 20.94949,
		13.37912, 15.56662, 18.19949, 26.23205, 35.53921, 39.35705, -12.30051, -9.120875, 17.56662, 15.94949,
		17.10705, 16.91421, 22.60705, 12.15782, 21.06662, 15.87912, 21.15782, 28.60705, 39.53921, -10.14295,
		-7.967177, -2.433375, 26.75412, 26.03282, 27.48205, 29.78921, 18.73205, 25.61616, 32.62912, 18.31662,
		22.86616, 31.35705, -11.96079, -5.892949, -1.508844, 3.004125, 30.31662, 29.74116, 33.10705, 19.41421,
		26.10705, 30.94949, 40.31662, 19.50412, 24.94949, -71.51795, -7.210786,
	}
	functionMixed = [knownLength]float32{
		3.965049, 5.098436, 4.579724, 4.363935, 4.175949, math.MaxFloat32, 4.480219, 0.3341134, 2.99515, 4.152438,
		7.468948, 13.25651, 20.42218, 11.92549, 4.974327, 3.76999, 1.317559, 1.129572, 2.632259, 4.35611,
		8.294551, 2.871041, 3.342704, 4.422572, 10.21013, 19.61244, 11.80138, 12.93477, 3.645882, 0.5078249,
		-1.916805, -0.4141178, 3.546377, 8.170443, 10.83148, 3.218596, 3.612838, 7.163753, 16.56607, 10.99164,
		12.81066, 11.60632, 0.3837162, -2.726538, -3.460494, 0.5, 7.360709, 10.70737, 11.17903, 3.488729,
		6.354019, 13.51969, 7.945268, 12.00092, 11.48221, 8.344154, -2.850647, -4.270228, -2.546377, 4.314332,
		9.897637, 11.05493, 11.44917, 6.22991, 12.70996, 6.54802, 8.954546,
	}
)

const mixedNaN = 5

// mixedOperands returns operands of the mixtures.
func mixedOperands() (x, y []float32) {
	x, y = small(13), small(7)
	x[mixedNaN], x[knownLength-2] = float32(math.NaN()), -20.5
	return x, y
}

// knownElements tests arithmetic.
func knownElements(ctx context.Context, e *engine.Engine) error { return plainMixture().test(ctx, e) }

// knownFunctions tests functions.
func knownFunctions(ctx context.Context, e *engine.Engine) error {
	return functionMixture().test(ctx, e)
}

func (m mixture) test(ctx context.Context, e *engine.Engine) error {
	x, y := mixedOperands()
	got := make([]float32, knownLength)
	for i := range got {
		if i != mixedNaN {
			got[i] = float32(math.NaN())
		}
	}
	if err := e.Elementwise(ctx, m.operation, &op.Attrs{}, got, x, y, nil); err != nil {
		return err
	}
	for i, v := range got {
		if i == mixedNaN && v == v {
			return fmt.Errorf("elementwise functions of %v and %v gave %v, not NaN: %w", x[i], y[i], v, engine.ErrWrong)
		}
		if off := math.Abs(float64(v) - float64(m.results[i])); i != mixedNaN && !(off <= knownWithin) {
			return fmt.Errorf("elementwise functions of %v and %v gave %v, not %v: %w", x[i], y[i], v, m.results[i], engine.ErrWrong)
		}
	}
	return nil
}
