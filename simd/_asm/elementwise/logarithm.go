package main

import (
	"math"

	"github.com/rayo-go/rayo/internal/ir"
)

// logMantissa is the immediate of VGETMANTPS for mantissas in [3/4, 3/2) that
// are NaN for negative numbers.
const logMantissa = 11

// logPoly returns (log(1+f) - f + f²/2)/f³ for 1+f in [3/4, 3/2] as a
// polynomial.
func logPoly() []float64 {
	return interpolate(func(f float64) float64 { return float64(math.Log1p(f)-f+float64(f*f/2)) / (f * f * f) }, -0.25, 0.5, 8)
}

// logarithm selects code for log and log2 on AVX-512. AVX-512 has instructions for the exponent and
// the mantissa of a number, including subnormal numbers. The rest is as in ir.Lower. Zero has the
// exponent -Inf and infinity the exponent +Inf, both with the mantissa 1, so only the sign of -0
// needs special code.
func (x x86) logarithm(s *selector, n *ir.Node) *value {
	fma := func(a, b, c *value) *value {
		return s.add(instruction{op: "VFMADD", src: []*value{a, b, c}, tied: anyTied, folds: []int{2, 1, 0}})
	}
	mul := func(a, b *value) *value { return s.commuting("VMULPS", second, a, b) }
	e := ir.ExpansionConstants()
	arg := s.commuting("VADDPS", second, s.value(n.Args[0]), s.constant(0)) // -0 becomes 0
	m := s.add(instruction{op: "VGETMANTPS", src: []*value{arg}, tied: -1, imm: logMantissa})
	k := s.plain("VSUBPS", second, s.plain("VGETEXPPS", nil, arg), s.plain("VGETEXPPS", nil, m))
	f := s.plain("VSUBPS", second, m, s.float(1))
	ff := mul(f, f)
	c := logPoly()
	p := s.float(c[len(c)-1])
	for i := len(c) - 2; i >= 0; i-- {
		p = fma(p, f, s.float(c[i]))
	}
	fff := mul(ff, f)
	if n.Code == ir.Log2 {
		low := fma(fff, p, mul(ff, s.float(-0.5)))
		t := fma(low, s.float(e.Log2e[0]), mul(f, s.float(e.Log2e[1])))
		return s.commuting("VADDPS", second, fma(f, s.float(e.Log2e[0]), t), k)
	}
	y := fma(fff, p, mul(k, s.float(e.Ln2[1])))
	y = fma(ff, s.float(-0.5), y)
	return fma(k, s.float(e.Ln2[0]), s.commuting("VADDPS", second, y, f))
}
