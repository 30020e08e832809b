package ir

import "math"

// atan: a polynomial for |x| up to 1. For larger x, pi/2 minus the polynomial of the reciprocal.
func (l *lowering) atan(x *Node) *Node {
	a := lower(abs(x), c(0x1p100)) // so that the reciprocal is not subnormal
	far := lt(c(1), a)
	t := choose(far, div(c(1), a), a)
	u := mul(t, t)
	y := fma(mul(t, u), horner(u, atanPoly), t)
	right := add(sub(c(halfPiParts[0]), y), c(math.Pi/2-halfPiParts[0]))
	return l.copySign(choose(far, right, y), x)
}
