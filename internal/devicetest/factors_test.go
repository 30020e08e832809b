package devicetest

import (
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// factors calls each elementwise operation that has parameters with fifty values of
// them, waiting and not: the results are right each time, and one plan serves all
// calls. From the third time on a device may keep that in a form of its own, a
// graph of CUDA or recorded commands.
func factors(t *testing.T, open Open) {
	dev := start(t, open)
	free := deviationsOf(t.Context(), dev)
	g := newGenerator(testutil.Seed(t))
	for _, o := range op.Catalogue() {
		if o.Parametric() == nil {
			continue
		}
		t.Run(o.Name(), func(t *testing.T) {
			before := dev.Stats().Compiled
			for range 50 {
				c := Case{Op: o}
				for range o.Params() {
					c.Params = append(c.Params, float32(g.NormFloat64()))
				}
				switch o {
				case op.LeakyRelu:
					c.Options, c.Params = op.LeakyReluOpts{Slope: c.Params[0]}, nil
				case op.Celu:
					c.Options, c.Params = op.CeluOpts{Alpha: 1 + c.Params[0]*c.Params[0]}, nil // the error grows with x over alpha
				case op.Elu:
					c.Options, c.Params = op.EluOpts{Alpha: c.Params[0]}, nil
				}
				for range o.Inputs() {
					c.In = append(c.In, g.tensor(op.F32, op.Shape{67}, g.tame))
				}
				if err := c.runCalls(t.Context(), dev, free); err != nil {
					t.Fatalf("%v: %v", &c, err)
				}
			}
			if n := dev.Stats().Compiled - before; n > 1 {
				t.Errorf("%d plans for calls that differ in parameters alone", n)
			}
		})
	}
}
