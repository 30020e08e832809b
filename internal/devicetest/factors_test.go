package devicetest

import (
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// factors calls each elementwise operation with parameters with fifty values of the parameters, by waiting and by
// asynchronous calls. The results must be right each time, and one plan must serve all calls. From the third
// call on a device may replay the plan from a CUDA graph or from recorded commands.
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
					c.Options, c.Params = op.CeluOpts{Alpha: 1 + c.Params[0]*c.Params[0]}, nil // the error grows with x / alpha
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
