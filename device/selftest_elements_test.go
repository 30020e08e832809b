//go:build !js || !nowebgpu

package device

import (
	"math"
	"testing"

	"github.com/rayo-go/rayo/op"
)

// TestMixed compares the results that the self-tests expect with the reference.
func TestMixed(t *testing.T) {
	x, y := mixedOperands()
	in := []*op.Array{op.NewArray(op.Shape{knownLength}), op.NewArray(op.Shape{knownLength})}
	for i := range x {
		in[0].Data[i], in[1].Data[i] = float64(x[i]), float64(y[i])
	}
	for _, m := range []mixture{plainMixture(), functionMixture()} {
		o := m.operation
		want, err := o.Reference(&op.Attrs{}, in, []op.DType{op.F32, op.F32})
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range want[0].Data {
			if i == mixedNaN {
				if w == w {
					t.Errorf("%s: result %d is %v, not NaN", o, i, w)
				}
			} else if d := math.Abs(w - float64(m.results[i])); !(d < knownWithin/10) {
				t.Errorf("%s: result %d: %v, expected %v", o, i, m.results[i], float32(w))
			}
		}
	}
}
