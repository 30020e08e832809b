//go:build !js || !nowebgpu

package device

import (
	"errors"
	"math"
	"testing"

	"github.com/rayo-go/rayo/internal/engine"
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

// TestMixedWrong checks that a wrong result gives an error with a type.
func TestMixedWrong(t *testing.T) {
	d, err := Open(t.Context(), Require(CPU))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	m := functionMixture()
	results := *m.results
	results[0] += 2 * knownWithin
	m.results = &results
	if err := m.test(t.Context(), d.eng); !errors.Is(err, engine.ErrWrong) || !errors.Is(err, ErrUnsupported) {
		t.Errorf("a wrong result: %v", err)
	}
}
