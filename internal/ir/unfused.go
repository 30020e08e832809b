package ir

import "math"

// RoundsProduct reports whether the product of an Fma in an expansion that takes [Unfused] into account may be
// rounded. It may if the Fma is a step of a polynomial, of a reduction with a short constant, or of a power of two,
// or if the product is small compared with the summand.
func RoundsProduct(n *Node) bool {
	to := n.Args[2]
	switch {
	case to.Code == Const, to.Code == Mul, to == n.Args[0], to == n.Args[1]:
		return true
	case to.Code == Fma && to.Args[0].Code == Neg: // the remainder of a quotient
		return true
	}
	for _, a := range n.Args[:2] {
		if a.Code == Bitcast || a.Code == Const && (shortBits(a.Value) || smallPart(a.Value)) {
			return true
		}
		if a.Code == Mul && to.Code != Neg {
			return true
		}
	}
	return false
}

// smallPart reports whether |v| is the lower part of ln 2.
func smallPart(v float64) bool {
	return float32(math.Abs(v)) == float32(ln2Parts[1])
}

// shortBits reports whether v has at most 15 significant bits.
func shortBits(v float64) bool {
	return math.Float32bits(float32(v))&(1<<9-1) == 0
}
