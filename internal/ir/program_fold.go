package ir

import (
	"math"
	bits32 "math/bits"
)

// Fold computes the value of an instruction of code c with constant operands. Operands are the bits of
// the Imm of a Const. The first has type from; the types of the others follow from the code. The first
// operand of a Select is its condition. Fold reports false for codes that it does not fold.
// Expressions and programs share this arithmetic, which [Code] describes.
func Fold(c Code, t, from Type, a, b, d uint32) (uint32, bool) {
	switch c {
	case IDiv, IMod:
		return foldDivision(c, t, a, b), true
	case CountOnes, LeadingZeros, TrailingZeros, ReverseBits, MulHigh:
		return foldBits(c, a, b), true
	}
	if c < Add || c >= numCodes {
		return 0, false
	}
	switch c {
	case Bitcast:
		return a, from != F16 && t != F16
	case Select:
		if a != 0 {
			return b, true
		}
		return d, true
	}
	if c == Fma {
		p, z := number(a, from)*number(b, from), number(d, from)
		return bitsOf(OddSum(p, z, p+z), t), true
	}
	n := Node{Code: c, Type: plain(t)}
	if c == Convert || c == Not {
		n.Args[0] = &Node{Type: plain(from)}
	}
	v := evalNode(&n, number(a, from), number(b, from), number(d, from))
	return bitsOf(v, t), true
}

// OddSum returns p + c rounded to odd: s, the nearest float64, if it is exact, else the
// neighbour of the exact sum with an odd last bit. Rounding the result again, to at most
// 51 bits, then gives the correctly rounded exact sum.
func OddSum(p, c, s float64) float64 {
	if s-s != 0 {
		return s
	}
	t := s - p
	low := (p - (s - t)) + (c - t)
	u := math.Float64bits(s)
	if low == 0 || u&1 != 0 {
		return s
	}
	if (low > 0) == (s > 0) {
		return math.Float64frombits(u + 1)
	}
	return math.Float64frombits(u - 1)
}

// plain returns the type whose arithmetic t has before it is rounded.
func plain(t Type) Type {
	if t == F16 {
		return F32
	}
	return t
}

// number returns the value of a constant.
func number(bits uint32, t Type) float64 {
	switch t {
	case F32, F16:
		return float64(math.Float32frombits(bits))
	case I32:
		return float64(int32(bits))
	}
	return float64(bits)
}

// bitsOf returns the constant of type t nearest to v.
func bitsOf(v float64, t Type) uint32 {
	switch t {
	case F32:
		return math.Float32bits(float32(v))
	case F16:
		return math.Float32bits(NearestHalf(v))
	case I32:
		return uint32(int32(v))
	}
	return uint32(v)
}

// NearestHalf returns the half float nearest to x, halves to even, as the
// float32 of the same value.
func NearestHalf(x float64) float32 {
	switch a := math.Abs(x); {
	case a >= 65520: // half way from the largest to 2^16
		return float32(math.Copysign(math.Inf(1), x))
	case a >= 0x1p-14: // 10 bits of the fraction stay
		u := math.Float64bits(x)
		u += 1<<41 - 1 + u>>42&1
		return float32(math.Float64frombits(u &^ (1<<42 - 1)))
	case a == a:
		return float32(math.Copysign(math.RoundToEven(a*0x1p24)*0x1p-24, x))
	}
	return float32(x)
}

// NearestBrain returns the bfloat16 nearest to x, halves to even, as the float32 of
// the same value.
func NearestBrain(x float64) float32 {
	if a := math.Abs(x); a < 0x1p-126 {
		return float32(math.Copysign(math.RoundToEven(a*0x1p133)*0x1p-133, x))
	}
	if x-x != 0 {
		return float32(x)
	}
	u := math.Float64bits(x) // 7 bits of the fraction stay
	u += 1<<44 - 1 + u>>45&1
	return float32(math.Float64frombits(u &^ (1<<45 - 1)))
}

func foldDivision(c Code, t Type, a, b uint32) uint32 {
	q, r := a, uint32(0)
	switch {
	case b == 0:
	case t == I32 && int32(b) == -1:
		q = -a // the least I32 is its own negative
	case t == I32:
		q, r = uint32(int32(a)/int32(b)), uint32(int32(a)%int32(b))
	default:
		q, r = a/b, a%b
	}
	if c == IDiv {
		return q
	}
	return r
}

func foldBits(c Code, a, b uint32) uint32 {
	switch c {
	case CountOnes:
		return uint32(bits32.OnesCount32(a))
	case LeadingZeros:
		return uint32(bits32.LeadingZeros32(a))
	case TrailingZeros:
		return uint32(bits32.TrailingZeros32(a))
	case ReverseBits:
		return bits32.Reverse32(a)
	}
	return uint32(uint64(a) * uint64(b) >> 32)
}

// Bits returns the value of a Const as an instruction has it in Imm.
func (n *Node) Bits() uint32 { return bitsOf(n.Value, n.Type) }
