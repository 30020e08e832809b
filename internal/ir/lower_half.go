package ir

import "math"

// The expansions of RoundF16 and RoundBF16 compute with the bits of the magnitude. Integer
// arithmetic is exact on every device, even if a compiler treats sums of floats as associative, or
// conversions to half floats beyond their range as undefined.

func word(v uint32) *Node { return NewConst(float64(v), U32) }

// The bits of float32 numbers.
const (
	infinity  = 0x7f800000
	halfLeast = 0x38800000 // 2^-14, the least normal binary16
	halfOver  = 0x477ff000 // 65520: larger numbers become infinite
)

// nearestBits returns the bits of a magnitude without the last n bits of the fraction, rounded to
// nearest even.
func nearestBits(m *Node, n uint32) *Node {
	odd := node(And, node(Shr, m, word(n)), word(1))
	return node(And, add(add(m, word(1<<(n-1)-1)), odd), word(^uint32(0)<<n))
}

// withSign returns the float with the magnitude r and the sign of x. It returns NaN if x, whose
// magnitude is m, is NaN.
func withSign(x, m, r *Node) *Node {
	r = choose(lt(word(infinity), m), m, r)
	sign := node(And, NewBitcast(x, U32), word(1<<31))
	return NewBitcast(node(Or, r, sign), F32)
}

func magnitude(x *Node) *Node { return node(And, NewBitcast(x, U32), word(math.MaxInt32)) }

// roundF16: below 2^-14, binary16 numbers are the multiples of 2^-24. This is the unit in the last
// place of 1/2, so that adding 1/2 rounds to these multiples.
func roundF16(x *Node) *Node {
	m := magnitude(x)
	units := sub(NewBitcast(add(NewBitcast(m, F32), c(0.5)), I32), ci(0x3f000000))
	small := NewBitcast(mul(NewConvert(units, F32), c(0x1p-24)), U32)
	r := choose(lt(m, word(halfLeast)), small, nearestBits(m, 13))
	return withSign(x, m, choose(lt(m, word(halfOver)), r, word(infinity)))
}

// roundBF16: the exponent has as many bits as that of a float32, and an overflow carries into the
// bits of Inf.
func roundBF16(x *Node) *Node {
	m := magnitude(x)
	return withSign(x, m, nearestBits(m, 16))
}
