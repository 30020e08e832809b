package ptxkernels

import (
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// TestVariants checks that For takes its own choice without a measurement, and any schedule of Variants that a request
// or its measurements name.
func TestVariants(t *testing.T) {
	rng := testutil.Rand(t)
	for range 50 {
		ty := []op.DType{op.F32, op.F16, op.BF16}[rng.IntN(3)]
		m, k, n := 64*(1+rng.IntN(40)), 64*(1+rng.IntN(40)), 64*(1+rng.IntN(40))
		r := &portable.Request{Op: op.MatMul, Attrs: op.MatMulOpts{TransB: rng.IntN(2) == 0}.Attrs(),
			In: []portable.Array{{Type: ty, Shape: op.Shape{m, k}}, {Type: ty, Shape: op.Shape{k, n}}}, Out: []portable.Array{{Type: ty, Shape: op.Shape{m, n}}}}
		if op.MatMulOptsOf(&r.Attrs).TransB {
			r.In[1].Shape = op.Shape{n, k}
		}
		plain, err := For(r, h200)
		if err != nil {
			t.Fatal(err)
		}
		names, err := Variants(r, h200)
		if err != nil || len(names) < 2 || len(names) > maxCandidates {
			t.Fatalf("%v %d by %d by %d: %v, %v", ty, m, k, n, names, err)
		}
		var plans []string
		for i, name := range names {
			named, tuned := *r, *r
			named.Variant, tuned.Tuning = name, portable.Tuning{portable.Key(r): name}
			p, err := For(&named, h200)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			q, err := For(&tuned, h200)
			if err != nil || q.Variant != p.Variant || i == 0 && p.Variant != plain.Variant || slices.Contains(plans, p.Variant) {
				t.Errorf("%v %d by %d by %d: %s gives %s and %s, without a name %s: %v", ty, m, k, n, name, p.Variant, q.Variant, plain.Variant, err)
			}
			plans = append(plans, p.Variant)
		}
		other := *r
		other.Tuning = portable.Tuning{portable.Key(r): "a schedule of another device"}
		if p, err := For(&other, h200); err != nil || p.Variant != plain.Variant {
			t.Errorf("an unknown name: %v, %v", p, err)
		}
	}
}
