//go:build !nowebgpu && !js && !race

package devicetest

import (
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// TestWebGPUManyRows multiplies many rows by quantised matrices that are large enough for panels. The conformance suite
// has no such products, because they would take too long on software drivers for every type.
func TestWebGPUManyRows(t *testing.T) {
	dev := start(t, webGPU(t, "lavapipe"))
	g, free := newGenerator(testutil.Seed(t)), deviationsOf(t.Context(), dev)
	types := slices.DeleteFunc(op.QuantTypes(), func(d op.DType) bool { return !native(d) })
	if !onGPU {
		g.Shuffle(len(types), func(i, j int) { types[i], types[j] = types[j], types[i] })
		types = types[:1]
	}
	for i, w := range types {
		// Rows, terms and columns of the left matrix's type.
		for _, s := range []struct {
			rows, terms, cols int
			d                 op.DType
		}{{70, 2304, 260, op.F32}, {130, 512 * (1 + 4*(i%2)), 1031, op.F16}, {20, 2048, 516, op.F32}} {
			if !onGPU && s.rows*s.terms*s.cols > 25<<20 {
				continue
			}
			c := Case{Op: op.MatMulQ, Options: op.MatMulQOpts{Act: op.Relu},
				In: []Tensor{g.tensor(s.d, op.Shape{s.rows, s.terms}, g.tame), g.quantised(w, op.Shape{s.cols, s.terms}), g.tensor(s.d, op.Shape{s.cols}, g.tame)}}
			if _, err := c.run(t.Context(), dev, free); err != nil {
				t.Errorf("%v: %v", &c, err)
			}
		}
	}
}
