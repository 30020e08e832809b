package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rayo-go/rayo/op"
)

// TestEvaluate compares what pages without programs compute in browsers without SIMD128 with the
// float64 reference.
func TestEvaluate(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	user := op.Binary("user", func(x, y op.Expr) op.Expr { return x.Mul(y).Add(op.Const(1)).Tanh() })
	tested := 0
	for _, o := range append(op.Catalogue(), user) {
		_, arity := o.Arity()
		types := []op.DType{op.F32, op.F32, op.F32}[:min(arity, 3)]
		a := o.Defaults()
		if out, err := o.Types(&a, types); o.Class() != op.Elementwise || err != nil || out[0] != op.F32 {
			continue
		}
		tested++
		const n = 1003
		in, arrays := [3][]float32{}, make([]*op.Array, arity)
		for k := range arrays {
			in[k], arrays[k] = make([]float32, n), op.NewArray(op.Shape{n})
			for i := range in[k] {
				in[k][i] = float32(rng.NormFloat64() * math.Exp(4*rng.Float64()))
				if i < 8 {
					in[k][i] = []float32{0, float32(math.NaN()), float32(math.Inf(1)), -1}[(i+k)%4]
				}
				arrays[k].Data[i] = float64(in[k][i])
			}
		}
		want, err := o.Reference(&a, arrays, types)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float32, n)
		for i := range got {
			got[i] = -77
		}
		if err := evaluate(nil, t.Context(), o, &a, got, in[0], in[1], in[2]); err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			mag := 0.0
			if want[0].Mag != nil {
				mag = want[0].Mag[i]
			}
			if err := o.Check(float64(v), want[0].Data[i], mag, op.F32); err != nil {
				t.Fatal(fmt.Errorf("%v of element %d: %w", o, i, err))
			}
		}
	}
	if tested < 60 {
		t.Errorf("%d operations were tested; expected at least 60", tested)
	}
}
