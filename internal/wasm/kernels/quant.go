package kernels

import (
	"github.com/rayo-go/rayo/internal/wasm"
	"github.com/rayo-go/rayo/internal/wasm/frame"
)

// blockFormat is a format of quantised weights: its sizes, and a function that writes the code to unpack a block.
type blockFormat struct {
	name            string
	elements, bytes int
	unpack          func(q *quantized)
}

var blockFormats = []blockFormat{
	{"q40", 32, 18, unpackQ4_0},
	{"q80", 32, 34, unpackQ8_0},
	{"q4k", 256, 144, unpackQ4_K},
	{"q6k", 256, 210, unpackQ6_K},
}

// quantized is a kernel over blocks under construction. The kernel computes the dot product of the
// blocks with x, or stores their numbers.
type quantized struct {
	kernel
	dot          bool
	half         *wasm.Func // converts binary16 to float32
	x, sums, src wasm.Local // without dot, x is the destination of the numbers
	total        wasm.Local
	minima       wasm.Local // the sum of the products of minimums with sums: a float
	acc, codes   wasm.Local
	scale, min   wasm.Local // the scale and minimum of the unpacked numbers, in all lanes; not all formats have min
	table        []wasm.Local
}

// quantizedBlocks writes the kernels of all formats.
func (s *Set) quantizedBlocks() {
	half := s.half()
	for _, format := range blockFormats {
		for _, dot := range []bool{true, false} {
			name := "dequantize." + format.name
			if dot {
				name = "dot." + format.name
			}
			s.add(name, func(k kernel) {
				q := &quantized{kernel: k, dot: dot, half: half, x: k.pointer(0), sums: k.pointer(1), src: k.pointer(2)}
				blocks := k.int(0)
				q.total, q.minima, q.acc, q.codes = k.Local(wasm.V128), k.Local(wasm.F32), k.Local(wasm.V128), k.Local(wasm.V128)
				q.scale, q.min = k.Local(wasm.V128), k.Local(wasm.V128)
				k.While(blocks, 1, func() {
					format.unpack(q)
					k.Add(q.x, 4*format.elements)
					k.Add(q.src, format.bytes)
					k.Add(q.sums, 4*format.elements/32)
					k.Add(blocks, -1)
				})
				if dot {
					across(k.Func, q.total, wasm.F32x4Add)
					k.Get(k.Param(0))
					k.Get(q.total)
					k.Lane(wasm.F32x4ExtractLane, 0)
					k.Get(q.minima)
					k.Op(wasm.F32Sub)
					k.Store(wasm.F32Store, frame.Results)
				}
			})
		}
	}
}

// half returns a function that converts binary16 to float32.
func (s *Set) half() *wasm.Func {
	f := s.m.Func(wasm.Signature{Params: []wasm.Type{wasm.I32}, Results: []wasm.Type{wasm.F32}})
	h, r := f.Param(0), f.Local(wasm.I32)
	part := func(mask, shift int32) {
		f.Get(h)
		f.Int(mask)
		f.Op(wasm.I32And)
		f.Int(shift)
		f.Op(wasm.I32Shl)
	}
	// Shifted to the position of a float's bits, the magnitude is 2**-112 times its value.
	part(0x7fff, 13)
	f.Op(wasm.F32Reinterpret)
	f.Float(0x1p112)
	f.Op(wasm.F32Mul, wasm.I32Reinterpret)
	f.Set(r)
	f.Get(h)
	f.Int(0x7c00)
	f.Op(wasm.I32And)
	f.Int(0x7c00)
	f.Op(wasm.I32Eq)
	f.If(func() {
		f.Get(r)
		f.Int(0x7f800000)
		f.Op(wasm.I32Or)
		f.Set(r)
	})
	part(0x8000, 16)
	f.Get(r)
	f.Op(wasm.I32Or, wasm.F32Reinterpret)
	return f
}

// pushHalf pushes the binary16 at an offset in the block as a float.
func (q *quantized) pushHalf(offset int) {
	q.Get(q.src)
	q.Load(wasm.I32Load16, offset)
	q.Call(q.half)
}

// lowBits replaces the bytes on the stack by their lower four bits, and highBits by the
// upper ones.
func (q *quantized) lowBits() {
	q.Int(15)
	q.Op(wasm.I8x16Splat, wasm.V128And)
}

func (q *quantized) highBits() {
	q.Int(4)
	q.Op(wasm.I8x16ShrU)
}

// less subtracts a number from the bytes on the stack.
func (q *quantized) less(v int32) {
	q.Int(v)
	q.Op(wasm.I8x16Splat, wasm.I8x16Sub)
}

// begin starts a group of numbers with one scale.
func (q *quantized) begin() {
	if q.dot {
		q.Splat(0)
		q.Set(q.acc)
	}
}

// sixteen pops 16 signed bytes, the codes of the elements of the block from element at on. With
// withMin the minimum min applies to them.
func (q *quantized) sixteen(at int, withMin bool) {
	q.Set(q.codes)
	for i := range 4 {
		number := func() {
			q.Get(q.codes)
			q.Op([]wasm.Op{wasm.I16x8ExtendLowS, wasm.I16x8ExtendHighS}[i/2])
			q.Op([]wasm.Op{wasm.I32x4ExtendLowS, wasm.I32x4ExtendHighS}[i%2], wasm.F32x4ConvertS)
		}
		if q.dot {
			number()
			q.Get(q.x)
			q.Load(wasm.V128Load, 4*at+16*i)
			q.MulAdd(q.acc)
			q.Set(q.acc)
			continue
		}
		q.Get(q.x)
		number()
		q.Get(q.scale)
		q.Op(wasm.F32x4Mul)
		if withMin {
			q.Get(q.min)
			q.Op(wasm.F32x4Sub)
		}
		q.Store(wasm.V128Store, 4*at+16*i)
	}
}

// end adds the sum of a group of elements, multiplied by their common scale, to the result.
func (q *quantized) end() {
	if q.dot {
		q.Get(q.total)
		q.Get(q.acc)
		q.Get(q.scale)
		q.Op(wasm.F32x4Mul, wasm.F32x4Add)
		q.Set(q.total)
	}
}

// load pushes 16 bytes of the block.
func (q *quantized) load(offset int) {
	q.Get(q.src)
	q.Load(wasm.V128Load, offset)
}

func unpackQ4_0(q *quantized) {
	q.pushHalf(0)
	q.Op(wasm.F32x4Splat)
	q.Set(q.scale)
	q.begin()
	for high := range 2 {
		q.load(2)
		if high == 0 {
			q.lowBits()
		} else {
			q.highBits()
		}
		q.less(8)
		q.sixteen(16*high, false)
	}
	q.end()
}

func unpackQ8_0(q *quantized) {
	q.pushHalf(0)
	q.Op(wasm.F32x4Splat)
	q.Set(q.scale)
	q.begin()
	for i := range 2 {
		q.load(2 + 16*i)
		q.sixteen(16*i, false)
	}
	q.end()
}

// byteBits pushes the bits in mask of a byte of the block, shifted right by shift before and left by up after.
func (q *quantized) byteBits(offset int, shift, mask, up int32) {
	q.Get(q.src)
	q.Load(wasm.I32Load8U, offset)
	if shift > 0 {
		q.Int(shift)
		q.Op(wasm.I32ShrU)
	}
	q.Int(mask)
	q.Op(wasm.I32And)
	if up > 0 {
		q.Int(up)
		q.Op(wasm.I32Shl)
	}
}

// unpackQ4_K unpacks eight groups of 32 elements, each with a scale and a minimum of six bits.
func unpackQ4_K(q *quantized) {
	d, dmin, minimum := q.float(0), q.float(1), q.float(2)
	q.pushHalf(0)
	q.Set(d)
	q.pushHalf(2)
	q.Set(dmin)
	const scales, codes = 4, 16
	for group := range 8 {
		q.Get(d)
		if group < 4 {
			q.byteBits(scales+group, 0, 63, 0)
		} else {
			q.byteBits(scales+group+4, 0, 15, 0)
			q.byteBits(scales+group-4, 6, 3, 4)
			q.Op(wasm.I32Or)
		}
		q.Op(wasm.F32ConvertI32S, wasm.F32Mul, wasm.F32x4Splat)
		q.Set(q.scale)
		q.Get(dmin)
		if group < 4 {
			q.byteBits(scales+group+4, 0, 63, 0)
		} else {
			q.byteBits(scales+group+4, 4, 15, 0)
			q.byteBits(scales+group, 6, 3, 4)
			q.Op(wasm.I32Or)
		}
		q.Op(wasm.F32ConvertI32S, wasm.F32Mul)
		q.Set(minimum)
		if q.dot {
			q.Get(q.minima)
			q.Get(minimum)
			q.Get(q.sums)
			q.Load(wasm.F32Load, 4*group)
			q.Op(wasm.F32Mul, wasm.F32Add)
			q.Set(q.minima)
		} else {
			q.Get(minimum)
			q.Op(wasm.F32x4Splat)
			q.Set(q.min)
		}
		q.begin()
		for i := range 2 {
			q.load(codes + group/2*32 + 16*i)
			if group%2 == 0 {
				q.lowBits()
			} else {
				q.highBits()
			}
			q.sixteen(32*group+16*i, true)
		}
		q.end()
	}
}

// float returns variable i for a float, and creates it at its first use.
func (q *quantized) float(i int) wasm.Local {
	for len(q.table) <= i {
		q.table = append(q.table, q.Local(wasm.F32))
	}
	return q.table[i]
}

// unpackQ6_K unpacks sixteen groups of 16 elements, each with a scale of eight bits. Four bits of
// each code are in one array, and two in another.
func unpackQ6_K(q *quantized) {
	d := q.float(0)
	const high, scales, scale = 128, 192, 208
	q.pushHalf(scale)
	q.Set(d)
	for group := range 16 {
		part, quarter, i := group/8, group%8/2, group%2
		q.Get(d)
		q.byteBits(scales+group, 0, 255, 24)
		q.Int(24)
		q.Op(wasm.I32ShrS, wasm.F32ConvertI32S, wasm.F32Mul, wasm.F32x4Splat)
		q.Set(q.scale)
		q.begin()
		q.load(64*part + 32*(quarter%2) + 16*i)
		if quarter < 2 {
			q.lowBits()
		} else {
			q.highBits()
		}
		q.load(high + 32*part + 16*i)
		if quarter > 0 {
			q.Int(int32(2 * quarter))
			q.Op(wasm.I8x16ShrU)
		}
		q.Int(3)
		q.Op(wasm.I8x16Splat, wasm.V128And)
		q.Int(4)
		q.Op(wasm.I8x16Shl, wasm.V128Or)
		q.less(32)
		q.sixteen(16*group, false)
		q.end()
	}
}
