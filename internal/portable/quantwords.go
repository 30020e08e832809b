//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// A wordFormat reads blocks of a format by words. A block has a number of units, and a lane decodes
// one unit at a time.
type wordFormat struct {
	units   int
	vectors bool // blocks are multiples of four words and are read in vectors
	rows    int  // rows of the matrix that a lane group should multiply together, at most
	read    func(x wordBlocks, at, unit kernel.U32) []wordGroup
}

// A wordGroup has elements of a block with one scale: element i is scale·quads[i/4][i%4] - least.
// Each quad has four neighbouring elements.
type wordGroup struct {
	scale kernel.F32
	least *kernel.F32 // nil for 0
	quads []wordQuad
}

// wordQuad has four neighbouring elements of a block. The first of them is element at.
type wordQuad struct {
	at kernel.U32
	v  kernel.Vec4F
}

// wordFormats returns the formats with functions of their own that read by words. Package block
// describes the layouts.
func wordFormats() map[block.Format]wordFormat {
	return map[block.Format]wordFormat{
		block.Q4_0: {4, false, 4, wordBlocks.q4_0},
		block.Q5_0: {4, false, 4, wordBlocks.q5_0},
		block.Q8_0: {4, false, 4, wordBlocks.q8_0},
		block.Q4_K: {8, true, 4, func(x wordBlocks, at, unit kernel.U32) []wordGroup { return x.q45K(at, unit, false) }},
		block.Q5_K: {8, true, 4, func(x wordBlocks, at, unit kernel.U32) []wordGroup { return x.q45K(at, unit, true) }},
		block.Q6_K: {16, false, 4, wordBlocks.q6K},
	}
}

// wordBlocks is an array of blocks that is read by words.
type wordBlocks struct {
	b      *kernel.Builder
	format block.Format
	one    func(i kernel.U32) kernel.U32   // reads a word; nil if blocks are read in vectors
	four   func(i kernel.U32) kernel.Vec4U // reads a vector; nil if blocks are read by single words
	grid   func(i kernel.U32) kernel.F32   // reads a level for a layoutReader: see gridOf
}

// inputWords declares an operand of a quantised type.
func inputWords(b *kernel.Builder, name string, t op.DType) wordBlocks {
	if f := t.Block(); wordFormats()[f].vectors {
		return wordBlocks{b: b, format: f, four: kernel.Input[kernel.Vec4U](b, name).At}
	}
	return inputBlocks(b, name, t).wordBlocks
}

// word returns the four bytes from an even byte on.
func (x wordBlocks) word(at kernel.U32) kernel.U32 {
	odd := at.Shr(kernel.U(1)).And(kernel.U(1))
	i := at.Shr(kernel.U(2))
	low, high := x.one(i), x.one(i.Add(odd))
	sixteen := kernel.U(16)
	return kernel.Select(odd.Eq(kernel.U(0)), low, low.Shr(sixteen).Or(high.Shl(sixteen)))
}

// half returns the half float at an even byte.
func (x wordBlocks) half(at kernel.U32) kernel.F32 {
	w := x.one(at.Shr(kernel.U(2)))
	return w.Shr(at.And(kernel.U(2)).Shl(kernel.U(3))).And(kernel.U(0xffff)).UnpackHalf().At(0)
}

// whole returns the bytes of w as numbers, minus less. It uses that the float32 with the bits
// 0x4b000000 + n is 2^23 + n.
func (x wordBlocks) whole(w kernel.U32, less int) kernel.Vec4F {
	u := kernel.U
	var v [4]kernel.F32
	for c := range v {
		v[c] = w.Shr(u(uint32(8 * c))).And(u(255)).Or(u(0x4b000000)).AsF32().Sub(kernel.F(float32(1<<23 + less)))
	}
	return x.b.Vec4F(v[0], v[1], v[2], v[3])
}

// nibbles returns the low or the high four bits of each byte.
func nibbles(w kernel.U32, high bool) kernel.U32 {
	if high {
		w = w.Shr(kernel.U(4))
	}
	return w.And(kernel.U(0x0f0f0f0f))
}

// ones moves the lowest bit of each byte to the fifth bit, and clears the others.
func ones(w kernel.U32) kernel.U32 { return w.And(kernel.U(0x01010101)).Shl(kernel.U(4)) }

// fifths moves the lowest four bits to the fifth bits of four bytes. It makes copies seven bits
// apart, and each byte keeps a bit of another copy.
func fifths(w kernel.U32) kernel.U32 {
	return ones(w.And(kernel.U(15)).Mul(kernel.U(1 | 1<<7 | 1<<14 | 1<<21)))
}

// signedBytes adds 128 to each byte, taken as a signed number, so that the result is unsigned.
func signedBytes(w kernel.U32) kernel.U32 { return w.Xor(kernel.U(0x80808080)) }

// signedByte returns the lowest byte as a signed number.
func signedByte(w kernel.U32) kernel.F32 {
	return w.Shl(kernel.U(24)).I32().Shr(kernel.U(24)).F32()
}

// sixBits returns a scale and a minimum of Q4_K or Q5_K. The words w0, w1 and w2 are the twelve
// bytes with the scales and minima of all eight parts, and shift selects a byte. early says that
// the part is one of the first four, which have another layout than the last four.
func sixBits(w0, w1, w2, shift kernel.U32, early kernel.Bool) (scale, minimum kernel.F32) {
	u := kernel.U
	low, mid, last := w0.Shr(shift), w1.Shr(shift), w2.Shr(shift)
	of := func(early6, four kernel.U32) kernel.F32 {
		return kernel.Select(early, early6.And(u(63)), four.And(u(15)).Or(early6.Shr(u(2)).And(u(0x30)))).F32()
	}
	return of(low, last), of(mid, last.Shr(u(4)))
}

// q4_0 decodes a unit of Q4_0, which is a word with eight numbers of four bits.
func (x wordBlocks) q4_0(at, unit kernel.U32) []wordGroup {
	first := unit.Shl(kernel.U(2))
	w := x.word(at.Add(kernel.U(2)).Add(first))
	return []wordGroup{{scale: x.half(at), quads: []wordQuad{
		{first, x.whole(nibbles(w, false), 8)}, {first.Add(kernel.U(16)), x.whole(nibbles(w, true), 8)}}}}
}

// q5_0 decodes a unit of Q5_0, which is a word of low bits, and eight bits of the word of fifth
// bits.
func (x wordBlocks) q5_0(at, unit kernel.U32) []wordGroup {
	first := unit.Shl(kernel.U(2))
	w, all := x.word(at.Add(kernel.U(6)).Add(first)), x.word(at.Add(kernel.U(2))).Shr(first)
	g := wordGroup{scale: x.half(at)}
	for i := range uint32(2) {
		five := nibbles(w, i == 1).Or(fifths(all.Shr(kernel.U(16 * i))))
		g.quads = append(g.quads, wordQuad{first.Add(kernel.U(16 * i)), x.whole(five, 16)})
	}
	return []wordGroup{g}
}

// q8_0 decodes a unit of Q8_0, which is two words.
func (x wordBlocks) q8_0(at, unit kernel.U32) []wordGroup {
	first := unit.Shl(kernel.U(3))
	g := wordGroup{scale: x.half(at)}
	for i := range uint32(2) {
		w := x.word(at.Add(kernel.U(2 + 4*i)).Add(first))
		g.quads = append(g.quads, wordQuad{first.Add(kernel.U(4 * i)), x.whole(signedBytes(w), 128)})
	}
	return []wordGroup{g}
}

// q45K decodes a unit of Q4_K, or of Q5_K if five is set: four words with 16 elements of one part
// of 32 elements and 16 elements of the next part. In Q5_K, byte l of the two vectors before has
// the fifth bits of element l of all eight parts.
func (x wordBlocks) q45K(at, unit kernel.U32, five bool) []wordGroup {
	u := kernel.U
	v := at.Shr(u(4))
	head := x.four(v)
	var top kernel.Vec4U
	if v = v.Add(u(1)); five {
		top = x.four(v.Add(unit.And(u(1))))
		v = v.Add(u(2))
	}
	quants := x.four(v.Add(unit))
	scales := head.At(0)
	d, m := scales.UnpackHalf().At(0), scales.UnpackHalf().At(1)
	chunk := unit.Shr(u(1))
	first := chunk.Shl(u(6)).Add(unit.And(u(1)).Shl(u(4)))
	early := chunk.Lt(u(2))
	gs := make([]wordGroup, 2)
	for i := range gs {
		shift := chunk.And(u(1)).Shl(u(4)).Add(u(uint32(8 * i)))
		scale, minimum := sixBits(head.At(1), head.At(2), head.At(3), shift, early)
		lm := m.Mul(minimum)
		gs[i] = wordGroup{scale: d.Mul(scale), least: &lm}
		for j := range 4 {
			q := nibbles(quants.At(j), i == 1)
			if five {
				q = q.Or(ones(top.At(j).Shr(chunk.Shl(u(1)).Add(u(uint32(i))))))
			}
			gs[i].quads = append(gs[i].quads, wordQuad{first.Add(u(uint32(32*i + 4*j))), x.whole(q, 0)})
		}
	}
	return gs
}

// q6K decodes a unit of Q6_K, which is two words of low bits and one word of high bits: four
// elements of each quarter of half a block.
func (x wordBlocks) q6K(at, unit kernel.U32) []wordGroup {
	u := kernel.U
	side, l := unit.Shr(u(3)), unit.And(u(7)).Shl(u(2))
	from := at.Add(side.Shl(u(6))).Add(l)
	lows := [2]kernel.U32{x.word(from), x.word(from.Add(u(32)))}
	high := x.word(at.Add(u(128)).Add(side.Shl(u(5))).Add(l))
	scales := at.Add(u(192)).Add(side.Shl(u(3)))
	shift := l.Shr(u(4)).Shl(u(3))
	two := [2]kernel.U32{x.word(scales), x.word(scales.Add(u(4)))}
	d := x.half(at.Add(u(208)))
	gs := make([]wordGroup, 4)
	for q := range gs {
		s := signedByte(two[q/2].Shr(shift.Add(u(uint32(q % 2 * 16)))))
		top := high.Shr(u(uint32(2 * q))).And(u(0x03030303)).Shl(u(4))
		gs[q] = wordGroup{scale: d.Mul(s), quads: []wordQuad{
			{side.Shl(u(7)).Add(l).Add(u(uint32(32 * q))), x.whole(nibbles(lows[q%2], q >= 2).Or(top), 32)}}}
	}
	return gs
}
