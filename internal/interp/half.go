package interp

import (
	"math"

	"github.com/rayo-go/rayo/internal/ir"
)

// A half float is represented by the float32 of the same value, in registers and in workgroup
// memory; only buffers have the 16 bits. Arithmetic is that of float32 with the result rounded once
// more, which for the four operations and the square root is the same as rounding once: float32 has
// more than twice the bits.

func roundHalf(x float32) float32 { return ir.NearestHalf(float64(x)) }

func roundBrain(x float32) float32 { return ir.NearestBrain(float64(x)) }

// fmaHalf returns a*b + c rounded once: the sum in float64 may be inexact.
func fmaHalf(a, b, c float32) float32 {
	p := float64(a) * float64(b)
	return ir.NearestHalf(ir.OddSum(p, float64(c), p+float64(c)))
}

// toHalf returns the bits of the half float nearest to x.
func toHalf(x float32) uint16 {
	h := ir.NearestHalf(float64(x))
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
