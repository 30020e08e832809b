package block

import (
	"encoding/binary"
	"math"
)

// loops are hand-written decoders for single formats. They are faster than the decoder derived from
// the description and give the same results; TestLoopsAreLayouts compares them.
var loops = [len(basics)]func(dst []float32, src []byte){
	Q4_0: dequantizeQ4_0, Q4_1: dequantizeQ4_1, Q5_0: dequantizeQ5_0, Q5_1: dequantizeQ5_1, Q8_0: dequantizeQ8_0,
	Q4_K: dequantizeQ4_K, Q5_K: dequantizeQ5_K, Q6_K: dequantizeQ6_K,
	F32: func(dst []float32, src []byte) {
		scalars(dst, src, 4, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) })
	},
	F16: func(dst []float32, src []byte) { scalars(dst, src, 2, half) },
	BF16: func(dst []float32, src []byte) {
		scalars(dst, src, 2, func(b []byte) float32 {
			return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)
		})
	},
	F64: func(dst []float32, src []byte) {
		scalars(dst, src, 8, func(b []byte) float32 { return float32(math.Float64frombits(binary.LittleEndian.Uint64(b))) })
	},
	I8: func(dst []float32, src []byte) {
		scalars(dst, src, 1, func(b []byte) float32 { return float32(int8(b[0])) })
	},
	I16: func(dst []float32, src []byte) {
		scalars(dst, src, 2, func(b []byte) float32 { return float32(int16(binary.LittleEndian.Uint16(b))) })
	},
	I32: func(dst []float32, src []byte) {
		scalars(dst, src, 4, func(b []byte) float32 { return float32(int32(binary.LittleEndian.Uint32(b))) })
	},
	I64: func(dst []float32, src []byte) {
		scalars(dst, src, 8, func(b []byte) float32 { return float32(int64(binary.LittleEndian.Uint64(b))) })
	},
}

// scalars decodes numbers of size bytes.
func scalars(dst []float32, src []byte, size int, value func([]byte) float32) {
	for i := range dst {
		dst[i] = value(src[:size:size])
		src = src[size:]
	}
}

// The functions below decode whole blocks. The conversions to float32 round each product
// and each sum: without them, compilers for some machines would fuse a product and a sum
// into one instruction, with other last bits.

func dequantizeQ4_0(dst []float32, src []byte) {
	for ; len(src) >= q4_0Bytes; src, dst = src[q4_0Bytes:], dst[shortElements:] {
		b, y := (*[q4_0Bytes]byte)(src), (*[shortElements]float32)(dst)
		d := half(b[:])
		for j := range 16 {
			q := b[2+j]
			y[j] = d * float32(int(q&15)-8)
			y[j+16] = d * float32(int(q>>4)-8)
		}
	}
}

func dequantizeQ4_1(dst []float32, src []byte) {
	for ; len(src) >= q4_1Bytes; src, dst = src[q4_1Bytes:], dst[shortElements:] {
		b, y := (*[q4_1Bytes]byte)(src), (*[shortElements]float32)(dst)
		d, m := half(b[:]), half(b[2:])
		for j := range 16 {
			q := b[4+j]
			y[j] = float32(d*float32(q&15)) + m
			y[j+16] = float32(d*float32(q>>4)) + m
		}
	}
}

func dequantizeQ5_0(dst []float32, src []byte) {
	for ; len(src) >= q5_0Bytes; src, dst = src[q5_0Bytes:], dst[shortElements:] {
		b, y := (*[q5_0Bytes]byte)(src), (*[shortElements]float32)(dst)
		d, high := half(b[:]), binary.LittleEndian.Uint32(b[2:])
		for j := range 16 {
			q := uint32(b[6+j])
			y[j] = d * float32(int32(q&15|high>>j&1<<4)-16)
			y[j+16] = d * float32(int32(q>>4|high>>(j+16)&1<<4)-16)
		}
	}
}

func dequantizeQ5_1(dst []float32, src []byte) {
	for ; len(src) >= q5_1Bytes; src, dst = src[q5_1Bytes:], dst[shortElements:] {
		b, y := (*[q5_1Bytes]byte)(src), (*[shortElements]float32)(dst)
		d, m, high := half(b[:]), half(b[2:]), binary.LittleEndian.Uint32(b[4:])
		for j := range 16 {
			q := uint32(b[8+j])
			y[j] = float32(d*float32(q&15|high>>j&1<<4)) + m
			y[j+16] = float32(d*float32(q>>4|high>>(j+16)&1<<4)) + m
		}
	}
}

func dequantizeQ8_0(dst []float32, src []byte) {
	for ; len(src) >= q8_0Bytes; src, dst = src[q8_0Bytes:], dst[shortElements:] {
		b, y := (*[q8_0Bytes]byte)(src), (*[shortElements]float32)(dst)
		d := half(b[:])
		for j := range y {
			y[j] = d * float32(int8(b[2+j]))
		}
	}
}

// groups holds the scales and minimums, of 6 bits each, of the eight groups of 32 elements
// in a block of Q4_K or Q5_K.
type groups struct{ scale, min [8]uint8 }

// unpack reads the groups from b. The first four scales and minimums are in the low bits of the first
// eight bytes. The low halves of the others are in the last four bytes, and their upper bits are in the
// upper bits of the first eight bytes.
func (g *groups) unpack(b *[12]byte) {
	for i := range 4 {
		g.scale[i], g.min[i] = b[i]&63, b[i+4]&63
		g.scale[i+4] = b[i+8]&15 | b[i]>>6<<4
		g.min[i+4] = b[i+8]>>4 | b[i+4]>>6<<4
	}
}

func dequantizeQ4_K(dst []float32, src []byte) {
	for ; len(src) >= q4_KBytes; src, dst = src[q4_KBytes:], dst[superElements:] {
		b := (*[q4_KBytes]byte)(src)
		d, dmin := half(b[:]), half(b[2:])
		var g groups
		g.unpack((*[12]byte)(b[4:]))
		// 32 bytes hold two groups: one in the low and one in the high halves of the bytes.
		for i := range 4 {
			q, y := (*[32]byte)(b[16+32*i:]), (*[64]float32)(dst[64*i:])
			s0, m0 := float32(d*float32(g.scale[2*i])), float32(dmin*float32(g.min[2*i]))
			s1, m1 := float32(d*float32(g.scale[2*i+1])), float32(dmin*float32(g.min[2*i+1]))
			for j, v := range q {
				y[j] = float32(s0*float32(v&15)) - m0
				y[j+32] = float32(s1*float32(v>>4)) - m1
			}
		}
	}
}

func dequantizeQ5_K(dst []float32, src []byte) {
	for ; len(src) >= q5_KBytes; src, dst = src[q5_KBytes:], dst[superElements:] {
		b := (*[q5_KBytes]byte)(src)
		d, dmin := half(b[:]), half(b[2:])
		var g groups
		g.unpack((*[12]byte)(b[4:]))
		high := (*[32]byte)(b[16:])
		for i := range 4 {
			q, y := (*[32]byte)(b[48+32*i:]), (*[64]float32)(dst[64*i:])
			s0, m0 := float32(d*float32(g.scale[2*i])), float32(dmin*float32(g.min[2*i]))
			s1, m1 := float32(d*float32(g.scale[2*i+1])), float32(dmin*float32(g.min[2*i+1]))
			for j, v := range q {
				h := high[j] >> (2 * i)
				y[j] = float32(s0*float32(v&15|h&1<<4)) - m0
				y[j+32] = float32(s1*float32(v>>4|h>>1&1<<4)) - m1
			}
		}
	}
}

func dequantizeQ6_K(dst []float32, src []byte) {
	for ; len(src) >= q6_KBytes; src, dst = src[q6_KBytes:], dst[superElements:] {
		b := (*[q6_KBytes]byte)(src)
		d := half(b[208:])
		// Two halves of 128 elements: each has four runs of 32. Two runs share the bytes of their
		// low bits, and all four share the bytes of their high bits.
		for n := range 2 {
			low, high := (*[64]byte)(b[64*n:]), (*[32]byte)(b[128+32*n:])
			scales, y := (*[8]byte)(b[192+8*n:]), (*[128]float32)(dst[128*n:])
			var s [8]float32
			for i, v := range scales {
				s[i] = d * float32(int8(v))
			}
			for j, h := range high {
				l0, l1, g := low[j], low[j+32], j/16
				y[j] = s[g] * float32(int(l0&15|h&3<<4)-32)
				y[j+32] = s[g+2] * float32(int(l1&15|h>>2&3<<4)-32)
				y[j+64] = s[g+4] * float32(int(l0>>4|h>>4&3<<4)-32)
				y[j+96] = s[g+6] * float32(int(l1>>4|h>>6<<4)-32)
			}
		}
	}
}
