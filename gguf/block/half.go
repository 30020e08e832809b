package block

import "math"

// half returns the value of the binary16 at the beginning of b. The conversions in
// both directions give the same results as hardware: exact, or rounded to nearest
// even, including subnormal numbers. A NaN becomes a quiet NaN.
func half(b []byte) float32 {
	h := uint32(b[0]) | uint32(b[1])<<8
	sign, e, m := h&0x8000<<16, h>>10&31, h&0x3ff
	switch e {
	case 0:
		v := float32(m) * 0x1p-24 // exact: the result is a normal float32
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 31:
		if m != 0 {
			m |= 0x200
		}
		return math.Float32frombits(sign | 0x7f800000 | m<<13)
	}
	return math.Float32frombits(sign | (e+112)<<23 | m<<13)
}

// putHalf stores the binary16 nearest to v at the beginning of b.
func putHalf(b []byte, v float32) {
	h := halfBits(v)
	b[0], b[1] = byte(h), byte(h>>8)
}

// rounded returns v rounded to binary16.
func rounded(v float32) float32 {
	var b [2]byte
	putHalf(b[:], v)
	return half(b[:])
}

// halfBits returns the bits of the binary16 nearest to v, with ties to even.
func halfBits(v float32) uint16 {
	x := math.Float32bits(v)
	sign := uint16(x >> 16 & 0x8000)
	switch x &= 0x7fffffff; {
	case x > 0x7f800000:
		return sign | 0x7e00
	case x >= 0x47800000: // 2^16
		return sign | 0x7c00
	case x < 0x38800000: // 2^-14: in units of 2^-24
		return sign | uint16(math.RoundToEven(float64(math.Float32frombits(x))*0x1p24))
	}
	// The carry may increment the exponent, up to the exponent of infinity.
	return sign | uint16((x-112<<23+0xfff+x>>13&1)>>13)
}
