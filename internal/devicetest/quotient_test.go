package devicetest

import (
	"math"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// quotients compares quotients and remainders of n pairs of integers with Go's. Dividends are near multiples of the
// divisor, near the ends of the range, or of any magnitude.
func quotients(t *testing.T, open Open, n int) {
	g := newGenerator(testutil.Seed(t))
	x, y := make([]int32, n), make([]int32, n)
	for i := range x {
		y[i] = int32(g.Uint32()) >> g.IntN(32)
		x[i] = int32(g.Uint32()) >> g.IntN(32)
		switch g.IntN(4) {
		case 0:
			if y[i] != 0 {
				x[i] = x[i]/y[i]*y[i] + int32(g.IntN(3)) - 1
			}
		case 1:
			x[i] = math.MaxInt32 - int32(g.IntN(600)) + int32(g.IntN(2))
		case 2:
			y[i] = math.MinInt32 + int32(g.IntN(600))
		}
	}
	u, v := make([]uint32, n), make([]uint32, n)
	for i := range u {
		u[i], v[i] = uint32(x[i]), uint32(y[i])
	}
	dev := start(t, open)
	whole(t, dev, x, y, func(x, y int32) (q, r, down, rest int32) {
		q, r = x/y, x%y
		if down, rest = q, r; r != 0 && (r < 0) != (y < 0) {
			down, rest = q-1, r+y
		}
		return q, r, down, rest
	})
	whole(t, dev, u, v, func(x, y uint32) (q, r, down, rest uint32) { return x / y, x % y, x / y, x % y })
}

// whole compares the four operations with the results of want, which computes them for divisors other than 0.
func whole[T int32 | uint32](t *testing.T, dev *device.Device, x, y []T, want func(x, y T) (q, r, down, rest T)) {
	b := batch.New(dev)
	p, q := batch.Upload(b, x), batch.Upload(b, y)
	values := []batch.Value{b.Div(p, q), b.Fmod(p, q), b.FloorDivide(p, q), b.Remainder(p, q)}
	if err := b.Execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got [4][]T
	for i, v := range values {
		var err error
		if got[i], err = batch.Read[T](t.Context(), b, v); err != nil {
			t.Fatal(err)
		}
	}
	wrong := 0
	for i := range x {
		var w [4]T
		if y[i] != 0 {
			w[0], w[1], w[2], w[3] = want(x[i], y[i])
		}
		if g := [4]T{got[0][i], got[1][i], got[2][i], got[3][i]}; g != w {
			if wrong++; wrong < 10 {
				t.Errorf("%d by %d: div, fmod, floor_divide and remainder are %d, want %d", x[i], y[i], g, w)
			}
		}
	}
}

func TestQuotients(t *testing.T) { quotients(t, cpu(0), 100_000) }

// TestQuotientsPortable tests quotients by the portable kernels, in the interpreter.
func TestQuotientsPortable(t *testing.T) { quotients(t, openPortable, 20_000) }

// TestUncorrectedQuotient checks that a device that flushes subnormal numbers, and only such a
// device, may give a floor_divide that its remainder does not correct, if the remainder is subnormal.
func TestUncorrectedQuotient(t *testing.T) {
	for _, y := range []float32{-1e-34, -1} {
		x := math.Nextafter32(15655*y, 1) // the quotient rounds to -15655
		c := Case{Op: op.FloorDivide, In: []Tensor{{Type: op.F32, Shape: op.Shape{1}, Data: []float64{float64(x)}}, {Type: op.F32, Shape: op.Shape{1}, Data: []float64{float64(y)}}}}
		want, _, err := c.Reference()
		if err != nil {
			t.Fatal(err)
		}
		small := math.Abs(float64(x)-15655*float64(y)) < 0x1p-126
		for _, flushes := range []bool{false, true} {
			f, err := c.allows(deviations{flushes: flushes, slack: vanishing, quotient: 2.5})
			if err != nil {
				t.Fatal(err)
			}
			for _, got := range []float64{-15657, -15656, -15655, -15654} {
				right := got == want[0].Data[0] || got == -15655 && flushes && small
				if f.allows(c.Op, 0, 0, got, want[0].Data[0], 0, op.F32) != right {
					t.Errorf("%v / %v, flushes %v: %v for %v", x, y, flushes, got, want[0].Data[0])
				}
			}
		}
	}
}
