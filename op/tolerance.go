package op

import (
	"math"

	"github.com/rayo-go/rayo/internal/fmt"
)

// Tolerance bounds the error of a result against the reference:
//
//	|got - want| <= max(ULP, ½)·ulp(want) + Mag·ε·magnitude + Abs
//
// where ulp is the unit in the last place of float32, ε is 2^-23 and magnitude is [Array].Mag of
// the reference, or 0. Half a unit in the last place of the result's type is added if that is
// narrower than float32: devices compute in float32 for every type in memory. NaN must agree, -0
// equals 0, and a result may be infinite if its bound reaches the end of the type's range. Integers
// and truth values must be equal.
type Tolerance struct {
	ULP float64 // units in the last place of the true result
	Mag float64 // units of ε·magnitude: for sums, whose error is not proportional to the result
	Abs float64 // absolute, for results near 0 of functions that cancel
}

// String writes the bound as a formula.
func (t Tolerance) String() string {
	s := fmt.Sprintf("%g ulp", max(t.ULP, 0.5))
	if t.Mag != 0 {
		if t.Mag != 1 {
			s += fmt.Sprintf(" + %g·ε·magnitude", t.Mag)
		} else {
			s += " + ε·magnitude"
		}
	}
	if t.Abs != 0 {
		s += fmt.Sprintf(" + %.2g", t.Abs)
	}
	return s
}

// Limits of float32.
const (
	epsilon   = 0x1p-23
	minULP    = 0x1p-149          // the distance between subnormal numbers
	overflow  = 0x1p128 - 0x1p103 // the least number that rounds to +Inf
	minNormal = 0x1p-126
)

// ulpOf returns the distance between the neighbours of v in a floating type.
func ulpOf(v float64, d DType) float64 {
	bits, least := 23, -149
	switch d {
	case F16:
		bits, least = 10, -24
	case BF16:
		bits, least = 7, -133
	}
	if v == 0 {
		return math.Ldexp(1, least)
	}
	_, e := math.Frexp(v)
	return math.Ldexp(1, max(e-1-bits, least))
}

// infinityOf returns the least number that rounds to +Inf in a floating type.
func infinityOf(d DType) float64 {
	switch d {
	case F16:
		return 65520
	case BF16:
		return 0x1p128 - 0x1p119
	}
	return overflow
}

// Bound returns the largest allowed distance of a result of type d from want, a reference of
// magnitude mag.
func (t Tolerance) Bound(want, mag float64, d DType) float64 {
	if !d.Float() || want-want != 0 {
		return 0
	}
	b := max(t.ULP, 0.5)*ulpOf(want, F32) + t.Abs
	if t.Mag != 0 && mag != 0 {
		b += t.Mag * epsilon * mag
	}
	if d != F32 {
		// The error may move the result beyond the next power of two, where units are larger.
		b += ulpOf(math.Abs(want)+b, d) / 2
	}
	return b
}

// Check returns an error if got, one element of a result of type d, is
// farther from the reference than the operation's tolerance allows.
func (o *Operation) Check(got, want, mag float64, d DType) error {
	return o.def().tol.Check(got, want, mag, d)
}

// Check returns an error if got, one element of a result of type d, is not
// within the tolerance of want.
func (t Tolerance) Check(got, want, mag float64, d DType) error {
	if got == want || got != got && want != want || math.IsInf(mag, 1) {
		return nil
	}
	if got != got || want != want || !d.Float() {
		return fmt.Errorf("got %v, want %v", got, want)
	}
	b := t.Bound(want, mag, d)
	if math.Abs(got-want) <= b {
		return nil
	}
	// An infinite result means a number beyond the type's range, which the bound must allow. Its sign
	// may differ from the reference's if the bound is wider than the range.
	if math.IsInf(got, 0) && math.Copysign(1, got)*want+b >= infinityOf(d) {
		return nil
	}
	return fmt.Errorf("got %v, want %v: off by %.3g, the bound is %.3g", got, want, math.Abs(got-want), b)
}

// underflow returns, in units of ε, the largest error that rounding the product t before adding it
// causes in a sum: half the least subnormal number if t is subnormal, because that is more than
// ε·t. (Otherwise Depth counts the rounding.)
func underflow(t float64) float64 {
	if t == 0 || math.Abs(t) >= minNormal {
		return 0
	}
	return minULP / 2 / epsilon
}

// Depth returns the factor of each term's magnitude in [Array].Mag for a sum of n terms: half the
// number of roundings that affect a term if float32 sums of at most 1024 terms are combined
// pairwise or in float64. Half, because a rounding is off by at most ε/2.
func Depth(n int) float64 {
	return float64(min(n, 1024))/2 + math.Log2(float64(max(n, 1)))/2 + 4
}
