package ir

import "math"

// atan: by a polynomial up to 1, and of the reciprocal, taken off a right angle,
// from there on.
func (l *lowering) atan(x *Node) *Node {
	a := lower(abs(x), c(0x1p100)) // whose reciprocal is no subnormal number
	far := lt(c(1), a)
	t := choose(far, div(c(1), a), a)
	u := mul(t, t)
	y := fma(mul(t, u), horner(u, atanPoly), t)
	right := add(sub(c(halfPiParts[0]), y), c(math.Pi/2-halfPiParts[0]))
	return l.copySign(choose(far, right, y), x)
}
