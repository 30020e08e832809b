package interp

import "math"

// The functions of float32 are computed in float64, which has 29 bits to
// spare: short series without corrections then give results within 0.6 units
// of the last place, with a third of the operations that the expansions of
// package ir need in float32.

const magic = 3 << 51 // adding it to a float64 rounds to an integer, which is then in the low bits

// 1/n!, the coefficients of the series of e**x.
const (
	c2 = 1. / 2
	c3 = c2 / 3
	c4 = c3 / 4
	c5 = c4 / 5
	c6 = c5 / 6
	c7 = c6 / 7
	c8 = c7 / 8
	c9 = c8 / 9
)

// exp returns e**x for any x. The result must be rounded to float32 or added to numbers that are
// not tiny.
func exp(x float64) float64 {
	if !(x > -200) {
		if x != x {
			return x
		}
		x = -200
	} else if x > 200 {
		x = 200
	}
	// e**x = 2**n · e**r for |r| <= ln(2)/2. The first omitted term of the series is at most 2e-10.
	t := x*math.Log2E + magic
	r := x - (t-magic)*math.Ln2
	r2 := r * r
	p := (1 + r + r2*(c2+c3*r)) + (r2*r2)*((c4+c5*r)+r2*(c6+c7*r+c8*r2))
	return math.Float64frombits(math.Float64bits(p) + math.Float64bits(t)<<52)
}

// expm1 returns e**x - 1.
func expm1(x float64) float64 {
	if !(math.Abs(x) < 0.35) {
		return exp(x) - 1
	}
	if x == 0 {
		return x // -0
	}
	x2 := x * x
	return x + x2*((c2+c3*x)+x2*((c4+c5*x)+x2*((c6+c7*x)+x2*(c8+c9*x))))
}

func tanh(x float64) float64 {
	if x == 0 {
		return x
	}
	e := expm1(2 * x)
	return e / (e + 2)
}

// log returns the logarithm of x, which is a float32 or at least 2^-1000.
func log(x float64) float64 {
	if !(x > 0 && x <= math.MaxFloat64) {
		switch {
		case x == 0:
			return math.Inf(-1)
		case x > 0:
			return x
		}
		return math.NaN()
	}
	const sqrtHalf = 0x3fe6a09e667f3bcd // its bits
	b := math.Float64bits(x)
	k := int64(b-sqrtHalf) >> 52
	m := math.Float64frombits(b - uint64(k)<<52)
	// log m = 2 artanh f for |f| <= 0.1716
	f := (m - 1) / (m + 1)
	u := f * f
	u2 := u * u
	s := (1 + u*(1./3)) + u2*((1./5+u*(1./7))+u2*((1./9+u*(1./11))+u2*(1./13)))
	return float64(k)*math.Ln2 + 2*f*s
}

func log1p(x float64) float64 {
	if !(math.Abs(x) < 0x1p-8) {
		return log(1 + x)
	}
	if x == 0 {
		return x
	}
	// 1+x would lose significant bits of x.
	return x - x*x*(1./2-x*(1./3-x*(1./4-x*(1./5))))
}

func pow(x, y float64) float64 {
	if x > 0 && x < math.MaxFloat64 && y-y == 0 {
		// The logarithm of package math, because its error is multiplied by y.
		return math.Exp(y * math.Log(x))
	}
	return math.Pow(x, y)
}

// ldexp is exact in float64 for the powers that it is defined for.
func ldexp(x, n float64) float64 {
	if n != n {
		return n
	}
	k := int(min(max(n, -300), 300))
	return x * math.Float64frombits(uint64(1023+k)<<52)
}
