package interp

import "math"

// A half float is held as the float32 of the same value, in registers and in
// workgroup memory; only buffers have the 16 bits. Arithmetic is that of
// float32 with the result rounded once more, which for the four operations and
// the square root is the same as rounding once: float32 has more than twice
// the bits.

// nearestHalf returns the half float nearest to x, halves to even.
func nearestHalf(x float64) float32 {
	a := math.Abs(x)
	switch {
	case a >= 65520: // what rounds to 2^16
		return float32(math.Copysign(math.Inf(1), x))
	case a >= 0x1p-14:
		u := math.Float64bits(x)
		u += 1<<41 - 1 + u>>42&1
		return float32(math.Float64frombits(u &^ (1<<42 - 1)))
	case a == a:
		const subnormal = 3 << 27 // the sum has 2^-24 as its last place
		return float32(math.Copysign(a+subnormal-subnormal, x))
	}
	return float32(x)
}

func roundHalf(x float32) float32 { return nearestHalf(float64(x)) }

// fmaHalf returns a*b + c rounded once: the sum in float64 may be inexact.
func fmaHalf(a, b, c float32) float32 {
	p := float64(a) * float64(b)
	return nearestHalf(oddSum(p, float64(c), p+float64(c)))
}

// toHalf returns the bits of the half float nearest to x.
func toHalf(x float32) uint16 {
	h := nearestHalf(float64(x))
	u := math.Float32bits(h)
	sign := uint16(u >> 16 & 0x8000)
	switch a := u &^ (1 << 31); {
	case a > 0x7f800000:
		return sign | 0x7e00
	case a == 0x7f800000:
		return sign | 0x7c00
	case a >= 113<<23: // 2^-14
		return sign | uint16((a-112<<23)>>13)
	default:
		return sign | uint16(math.Abs(float64(h))*0x1p24)
	}
}

// fromHalf returns the value of a half float.
func fromHalf(h uint16) float32 {
	sign, u := uint32(h&0x8000)<<16, uint32(h&0x7fff)
	switch {
	case u >= 0x7c00:
		return math.Float32frombits(sign | 0x7f800000 | (u&0x3ff)<<13)
	case u >= 0x400:
		return math.Float32frombits(sign | u<<13 + 112<<23)
	}
	return math.Float32frombits(sign | math.Float32bits(float32(u)*0x1p-24))
}
