package op

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestUsersOperationsHaveABound checks that float32 arithmetic stays within the error bound of a user's
// operation, and that the bound is not needlessly wide.
func TestUsersOperationsHaveABound(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	cancels := Binary("cancels", func(x, y Expr) Expr {
		return x.Mul(y).Sub(x.Add(y).Square().Sub(x.Square()).Sub(y.Square()).Mul(Const(0.5)))
	})
	for _, c := range []struct {
		o    *Operation
		f    func(x, y float32) float32
		most float64 // the widest bound that is allowed, in units in the last place of the result
	}{
		{Binary("softsign", func(x, y Expr) Expr { return x.Div(x.Abs().Add(one)) }), func(x, _ float32) float32 { return x / (float32(math.Abs(float64(x))) + 1) }, 4},
		{cancels, func(x, y float32) float32 {
			s := x + y
			p := x * y
			q := s * s
			a := x * x
			b := y * y
			d := q - a
			e := d - b
			h := e * 0.5
			return p - h
		}, math.Inf(1)},
	} {
		for range 2000 {
			x, y := float32(rng.NormFloat64()), float32(rng.NormFloat64())
			r, err := c.o.Reference(&Attrs{}, []*Array{{Shape: Shape{}, Data: []float64{float64(x)}}, {Shape: Shape{}, Data: []float64{float64(y)}}}, []DType{F32, F32})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.o.Check(float64(c.f(x, y)), r[0].Data[0], r[0].Mag[0], F32); err != nil {
				t.Fatalf("%v(%v, %v): %v", c.o, x, y, err)
			}
			if b := c.o.Tolerance().Bound(r[0].Data[0], r[0].Mag[0], F32); b > c.most*ulpOf(r[0].Data[0], F32) {
				t.Fatalf("%v(%v, %v): the bound %v is loose", c.o, x, y, b)
			}
		}
	}
}
