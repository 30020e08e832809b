package op

import (
	"math"
	"testing"
)

// TestActivationOfUndefined checks that an undefined element of a product is undefined after an
// activation too, even if its value in float64 is an infinity.
func TestActivationOfUndefined(t *testing.T) {
	inf := math.Inf(1)
	a := MatMulQOpts{Act: LeakyRelu}.Attrs()
	for _, v := range []float64{inf, -inf, math.NaN(), 3} {
		r := &Array{Data: []float64{v}, Mag: []float64{inf}}
		activate(&a, MatMulQ.Tolerance(), r)
		if !math.IsInf(r.Mag[0], 1) {
			t.Errorf("leaky_relu of the undefined element %v has magnitude %v, want +Inf", v, r.Mag[0])
		}
	}
}
