package emu

import (
	"math"
	"math/big"
)

// format is a floating-point format of the reference.
type format struct {
	precision   uint
	least, most int // exponents: of the last bit of the least number, of the greatest
	from        func(uint64) float64
	bytes       int
}

var formats = map[string]format{
	"f16":  {11, -24, 15, func(x uint64) float64 { return refHalf(x, 5, 10) }, 2},
	"bf16": {8, -133, 127, func(x uint64) float64 { return refHalf(x, 8, 7) }, 2},
	"f32":  {24, -149, 127, func(x uint64) float64 { return float64(math.Float32frombits(uint32(x))) }, 4},
	"f64":  {53, -1074, 1023, math.Float64frombits, 8},
}

// refHalf reads a format of 16 bits from its definition.
func refHalf(x uint64, expBits, fracBits int) float64 {
	exp, frac := int(x>>fracBits)&(1<<expBits-1), float64(x&(1<<fracBits-1))
	bias := 1<<(expBits-1) - 1
	v := math.Ldexp(1+math.Ldexp(frac, -fracBits), exp-bias)
	switch {
	case exp == 0:
		v = math.Ldexp(frac, 1-bias-fracBits)
	case exp == 1<<expBits-1 && frac == 0:
		v = math.Inf(1)
	case exp == 1<<expBits-1:
		v = math.NaN()
	}
	if x>>15&1 != 0 {
		v = -v
	}
	return v
}

// round rounds an exact number to a format, using only integers.
func (f format) round(x *big.Float, mode big.RoundingMode) float64 {
	if x.Sign() == 0 {
		return 0
	}
	// The unit of the last place of the result.
	unit := max(x.MantExp(nil)-int(f.precision), f.least)
	scaled := new(big.Float).SetPrec(5000).SetMantExp(x, -unit)
	whole, _ := scaled.Int(nil)
	rest := new(big.Float).SetPrec(5000).Sub(scaled, new(big.Float).SetPrec(5000).SetInt(whole))
	neg := x.Sign() < 0
	twice := new(big.Float).SetPrec(5000).Abs(new(big.Float).SetPrec(5000).Mul(rest, big.NewFloat(2)))
	away := false
	switch mode {
	case big.ToNearestEven:
		c := twice.Cmp(big.NewFloat(1))
		away = c > 0 || c == 0 && whole.Bit(0) == 1
	case big.ToNegativeInf:
		away = neg && rest.Sign() != 0
	case big.ToPositiveInf:
		away = !neg && rest.Sign() != 0
	}
	if away {
		if neg {
			whole.Sub(whole, big.NewInt(1))
		} else {
			whole.Add(whole, big.NewInt(1))
		}
	}
	r := new(big.Float).SetPrec(5000).SetMantExp(new(big.Float).SetPrec(5000).SetInt(whole), unit)
	if r.MantExp(nil) > f.most+1 { // beyond the greatest number
		v := math.Inf(1)
		if mode == big.ToZero || mode == big.ToNegativeInf && !neg || mode == big.ToPositiveInf && neg {
			v = math.Ldexp(2-math.Ldexp(1, 1-int(f.precision)), f.most)
		}
		return math.Copysign(v, float64(r.Sign()))
	}
	v, _ := r.Float64()
	return math.Copysign(v, float64(x.Sign()))
}

// fma is the reference of x*y + z, with the rules of IEEE 754 for infinities, NaN and zeros.
func (f format) fma(x, y, z float64, mode big.RoundingMode) float64 {
	if v := math.FMA(x, y, z); v != v || math.IsInf(x, 0) || math.IsInf(y, 0) || math.IsInf(z, 0) {
		if x == x && y == y && z == z && !math.IsInf(x, 0) && !math.IsInf(y, 0) && !math.IsInf(z, 0) {
			panic("a NaN of finite numbers")
		}
		return v
	}
	num := func(v float64) *big.Float { return new(big.Float).SetPrec(5000).SetFloat64(v) }
	p := num(x)
	p.Mul(p, num(y))
	s := new(big.Float).SetPrec(5000).Add(p, num(z))
	if s.Sign() != 0 {
		return f.round(s, mode)
	}
	// The sum is exactly zero. If both terms have the same sign, the zero has this sign.
	pneg := math.Signbit(x) != math.Signbit(y)
	if pneg == math.Signbit(z) {
		return math.Copysign(0, z)
	}
	if mode == big.ToNegativeInf {
		return math.Copysign(0, -1)
	}
	return 0
}

// A matcher reports whether the bits of a result are acceptable.
type matcher = func(got uint64) bool

// same accepts the given number of the format, and any NaN for NaN.
func (f format) same(want float64) matcher {
	return func(got uint64) bool {
		v := f.from(got)
		if want != want {
			return v != v
		}
		return v == want && math.Signbit(v) == math.Signbit(want)
	}
}

// within accepts numbers with a relative error of at most tol, or with a small absolute error.
func (f format) within(want, tol, abs float64) matcher {
	return func(got uint64) bool {
		v := f.from(got)
		if want != want {
			return v != v
		}
		if math.IsInf(want, 0) || want == 0 && abs == 0 {
			return v == want
		}
		return math.Abs(v-want) <= max(tol*math.Abs(want), abs, math.Ldexp(1, f.least))
	}
}
