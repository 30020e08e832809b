package interp

import "math"

// The functions of float32 are computed in float64, which has 29 bits to
// spare: short series without corrections then give results within 0.52 units
// of the last place, with a third of the operations that the expansions of
// package ir need in float32.

const magic = 3 << 51 // adding it to a float64 rounds to an integer, which is then in the low bits

// expSeries is e**r for |r| <= ln(2)/2; the first term left out is 2e-10 at most.
func expSeries(r float64) float64 {
	const (
		c2 = 1. / 2
		c3 = c2 / 3
		c4 = c3 / 4
		c5 = c4 / 5
		c6 = c5 / 6
		c7 = c6 / 7
		c8 = c7 / 8
	)
	r2 := r * r
	r4 := r2 * r2
	return (1 + r + r2*(c2+c3*r)) + r4*((c4+c5*r)+r2*(c6+c7*r)+r4*c8)
}

// scaled returns e**x for |x| < 700.
func scaled(x float64) float64 {
	t := x*math.Log2E + magic
	r := x - (t-magic)*math.Ln2
	return math.Float64frombits(math.Float64bits(expSeries(r)) + math.Float64bits(t)<<52)
}

// wide returns e**x for any x of which the result is to be rounded to float32
// or added to numbers that are not tiny.
func wide(x float64) float64 {
	if x != x {
		return x
	}
	return scaled(min(max(x, -200), 200))
}

func exp(x float32) float32 { return float32(wide(float64(x))) }

func exp2(x float32) float32 { return float32(wide(float64(x) * math.Ln2)) }

// less1 returns e**x - 1.
func less1(x float64) float64 {
	if math.Abs(x) >= 0.35 {
		return wide(x) - 1
	}
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
	x2 := x * x
	return x + x2*((c2+c3*x)+x2*((c4+c5*x)+x2*((c6+c7*x)+x2*(c8+c9*x))))
}

func expm1(x float32) float32 {
	if x == 0 {
		return x // -0
	}
	return float32(less1(float64(x)))
}

func tanh(x float32) float32 {
	if x == 0 {
		return x
	}
	e := less1(2 * float64(x))
	return float32(e / (e + 2))
}

func sigmoid(x float32) float32 { return float32(1 / (1 + wide(-float64(x)))) }

// normalLog returns log(x) for a positive normal x.
func normalLog(x float64) float64 {
	const sqrtHalf = 0x3fe6a09e667f3bcd
	b := math.Float64bits(x)
	k := int64(b-sqrtHalf) >> 52
	m := math.Float64frombits(b - uint64(k)<<52)
	// log m = 2 artanh f, |f| <= 0.1716
	f := (m - 1) / (m + 1)
	u := f * f
	return float64(k)*math.Ln2 + 2*f*(1+u*(1./3+u*(1./5+u*(1./7+u*(1./9+u*(1./11+u*(1./13)))))))
}

// plainLog returns log(x) for any x that is a float32 or larger than 2^-1000.
func plainLog(x float64) float64 {
	switch {
	case x > 0 && x <= math.MaxFloat64:
		return normalLog(x)
	case x == 0:
		return math.Inf(-1)
	case x > 0:
		return x
	}
	return math.NaN()
}

func log(x float32) float32 { return float32(plainLog(float64(x))) }

func log2(x float32) float32 { return float32(plainLog(float64(x)) * math.Log2E) }

func log1p(x float32) float32 {
	v := float64(x)
	if math.Abs(v) < 0x1p-8 {
		if v == 0 {
			return x
		}
		// 1+v would lose what matters.
		return float32(v - v*v*(1./2-v*(1./3-v*(1./4-v*(1./5)))))
	}
	return float32(plainLog(1 + v))
}

func erf(x float32) float32  { return float32(math.Erf(float64(x))) }
func erfc(x float32) float32 { return float32(math.Erfc(float64(x))) }

func normCDF(x float32) float32 { return float32(0.5 * math.Erfc(-float64(x)*(1/math.Sqrt2))) }

func sin(x float32) float32 { return float32(math.Sin(float64(x))) }
func cos(x float32) float32 { return float32(math.Cos(float64(x))) }

func pow(x, y float32) float32 {
	v, w := float64(x), float64(y)
	if v > 0 && v < math.MaxFloat64 && w-w == 0 {
		return float32(math.Exp(w * math.Log(v)))
	}
	return float32(math.Pow(v, w))
}

// ldexp is exact in float64 for the powers that it is defined for.
func ldexp(x, n float32) float32 {
	if n != n {
		return n
	}
	k := int(min(max(n, -300), 300))
	return float32(float64(x) * math.Float64frombits(uint64(1023+k)<<52))
}
