package block

import (
	"encoding/binary"
	"math"
)

// extreme returns the element of the greatest magnitude, the first of equal
// ones.
func extreme(x []float32) float32 {
	m := float32(0)
	for _, v := range x {
		if magnitude(v) > magnitude(m) {
			m = v
		}
	}
	return m
}

func magnitude(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ (1 << 31)) }

// reciprocal returns 1/d, and 0 where that is no number: then all elements
// are so small that they become 0.
func reciprocal(d float32) float32 {
	r := 1 / d
	if r-r != 0 {
		return 0
	}
	return r
}

// signedScale returns the scale with which the element of the greatest
// magnitude becomes -levels, and its reciprocal. The other end of the range
// has one level less, so it is left to the other sign.
func signedScale(x []float32, levels float32) (d, r float32) {
	d = extreme(x) / -levels
	return d, reciprocal(d)
}

// level returns v·r in levels from 0 to limit: the middle one is 0, to which
// half a level is added for rounding.
func level(v, r float32, limit float32) uint8 {
	return uint8(min(limit, float32(v*r)+(limit/2+1)))
}

func quantizeQ4_0(dst []byte, src []float32) {
	for ; len(src) >= shortElements; src, dst = src[shortElements:], dst[q4_0Bytes:] {
		x, b := (*[shortElements]float32)(src), (*[q4_0Bytes]byte)(dst)
		d, r := signedScale(x[:], 8)
		putHalf(b[:], d)
		for j := range 16 {
			b[2+j] = level(x[j], r, 15) | level(x[j+16], r, 15)<<4
		}
	}
}

func quantizeQ5_0(dst []byte, src []float32) {
	for ; len(src) >= shortElements; src, dst = src[shortElements:], dst[q5_0Bytes:] {
		x, b := (*[shortElements]float32)(src), (*[q5_0Bytes]byte)(dst)
		d, r := signedScale(x[:], 16)
		putHalf(b[:], d)
		high := uint32(0)
		for j := range 16 {
			lo, hi := level(x[j], r, 31), level(x[j+16], r, 31)
			b[6+j] = lo&15 | hi<<4
			high |= uint32(lo>>4)<<j | uint32(hi>>4)<<(j+16)
		}
		binary.LittleEndian.PutUint32(b[2:], high)
	}
}

func quantizeQ8_0(dst []byte, src []float32) {
	for ; len(src) >= shortElements; src, dst = src[shortElements:], dst[q8_0Bytes:] {
		x, b := (*[shortElements]float32)(src), (*[q8_0Bytes]byte)(dst)
		d := magnitude(extreme(x[:])) / 127
		r := reciprocal(d)
		putHalf(b[:], d)
		for j, v := range x {
			b[2+j] = byte(int8(math.Round(float64(v * r))))
		}
	}
}
