package portable

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// TestLargeSums checks the tolerance of sums for which a lane adds many elements, in arrays whose
// mean is far from 0.
func TestLargeSums(t *testing.T) {
	testutil.Need(t, "long") // takes seconds
	rnd := rand.New(rand.NewPCG(35, 36))
	shifted := func(shape ...int) *op.Array {
		x := normal(rnd, shape...)
		for i := range x.Data {
			x.Data[i] = float64(float32(x.Data[i] + 1000))
		}
		return x
	}
	x, y := shifted(1<<21+17), shifted(1<<20+3)
	cs := []*trial{}
	for _, o := range []*op.Operation{op.Sum, op.Var, op.NormL2} {
		cs = append(cs, reductionTrial(o, false, x))
	}
	for _, o := range []*op.Operation{op.Softmax, op.LogSoftmax, op.LayerNorm, op.RMSNorm, op.Cumsum} {
		cs = append(cs, rowTrial(rnd, o, y, 0))
	}
	for _, c := range cs {
		for _, name := range Variants(c.o) {
			r, err := c.request(Target{Subgroups: strings.HasSuffix(name, "subgroups")})
			if err != nil {
				t.Fatal(err)
			}
			r.Variant = name
			if _, err := For(r); err != nil || r.Target.Subgroups {
				continue
			}
			if err := c.run(&rig{subgroup: 32}, r); err != nil {
				t.Errorf("%v, variant %q: %v", c.o, name, err)
			}
		}
	}
}
