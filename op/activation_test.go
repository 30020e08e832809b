package op

import (
	"math"
	"testing"
)

// TestActivationOfUndefined: an element of a product that is not defined stays so behind
// an activation, also where float64 gives an infinity.
func TestActivationOfUndefined(t *testing.T) {
	inf := math.Inf(1)
	a := MatMulQOpts{Act: LeakyRelu}.Attrs()
	for _, v := range []float64{inf, -inf, math.NaN(), 3} {
		r := &Array{Data: []float64{v}, Mag: []float64{inf}}
		activate(&a, MatMulQ.Tolerance(), r)
		if !math.IsInf(r.Mag[0], 1) {
			t.Errorf("leaky_relu of %v, not defined: magnitude %v, want +Inf", v, r.Mag[0])
		}
	}
}
