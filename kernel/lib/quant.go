package lib

import (
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// quantised is an array of blocks in memory, read by element. The layouts are
// those of package block; fields of blocks begin at even bytes.
type quantised struct {
	b      *kernel.Builder
	format block.Format
	word   func(i kernel.U32) kernel.U32
}

// inputBlocks declares an operand of a quantised type.
func inputBlocks(b *kernel.Builder, name string, t op.DType) quantised {
	return quantised{b, t.Block(), kernel.Input[kernel.U32](b, name).At}
}

// dequantisers make element j of the block at byte at.
var dequantisers = map[block.Format]func(x quantised, at, j kernel.U32) kernel.F32{
	block.Q4_0: quantised.q4_0,
	block.Q5_0: quantised.q5_0,
	block.Q8_0: quantised.q8_0,
	block.Q4_K: func(x quantised, at, j kernel.U32) kernel.F32 { return x.q45K(at, j, false) },
	block.Q5_K: func(x quantised, at, j kernel.U32) kernel.F32 { return x.q45K(at, j, true) },
	block.Q6_K: quantised.q6K,
}

// element returns element i of the array.
func (x quantised) element(i kernel.U32) kernel.F32 {
	n := kernel.U(uint32(x.format.Elements()))
	return dequantisers[x.format](x, i.Div(n).Mul(kernel.U(uint32(x.format.Bytes()))), i.Mod(n))
}

// byteAt returns the byte at a place.
func (x quantised) byteAt(at kernel.U32) kernel.U32 {
	return x.word(at.Shr(kernel.U(2))).Shr(at.And(kernel.U(3)).Shl(kernel.U(3))).And(kernel.U(255))
}

// signed returns the byte at a place as a number from -128 on.
func (x quantised) signed(at kernel.U32) kernel.F32 {
	return x.byteAt(at).Shl(kernel.U(24)).I32().Shr(kernel.U(24)).F32()
}

// pair returns the two bytes at an even place.
func (x quantised) pair(at kernel.U32) kernel.U32 {
	return x.word(at.Shr(kernel.U(2))).Shr(at.And(kernel.U(2)).Shl(kernel.U(3))).And(kernel.U(0xffff))
}

// half returns the half float at an even place.
func (x quantised) half(at kernel.U32) kernel.F32 { return x.pair(at).UnpackHalf().At(0) }

// nibble returns the low four bits of the byte at a place, or the high ones.
func (x quantised) nibble(at kernel.U32, high kernel.Bool) kernel.U32 {
	return x.byteAt(at).Shr(kernel.Select(high, kernel.U(4), kernel.U(0))).And(kernel.U(15))
}

func (x quantised) q4_0(at, j kernel.U32) kernel.F32 {
	q := x.nibble(at.Add(kernel.U(2)).Add(j.And(kernel.U(15))), j.Ge(kernel.U(16)))
	return q.F32().Sub(kernel.F(8)).Mul(x.half(at))
}

func (x quantised) q5_0(at, j kernel.U32) kernel.F32 {
	q := x.nibble(at.Add(kernel.U(6)).Add(j.And(kernel.U(15))), j.Ge(kernel.U(16)))
	high := x.pair(at.Add(kernel.U(2)).Add(j.Shr(kernel.U(4)).Shl(kernel.U(1)))).Shr(j.And(kernel.U(15))).And(kernel.U(1))
	return q.Or(high.Shl(kernel.U(4))).F32().Sub(kernel.F(16)).Mul(x.half(at))
}

func (x quantised) q8_0(at, j kernel.U32) kernel.F32 {
	return x.signed(at.Add(kernel.U(2)).Add(j)).Mul(x.half(at))
}

// q45K is Q4_K, or Q5_K with five bits: eight parts of 32, each with a scale and
// a minimum of six bits that lie in twelve bytes.
func (x quantised) q45K(at, j kernel.U32, five bool) kernel.F32 {
	part, l := j.Shr(kernel.U(5)), j.And(kernel.U(31))
	quants := uint32(16)
	if five {
		quants = 48
	}
	q := x.nibble(at.Add(kernel.U(quants)).Add(part.Shr(kernel.U(1)).Shl(kernel.U(5))).Add(l), part.And(kernel.U(1)).Eq(kernel.U(1)))
	if five {
		high := x.byteAt(at.Add(kernel.U(16)).Add(l)).Shr(part).And(kernel.U(1))
		q = q.Or(high.Shl(kernel.U(4)))
	}
	scales := at.Add(kernel.U(4))
	early, first := part.Lt(kernel.U(4)), part.And(kernel.U(3))
	low, mid, last := x.byteAt(scales.Add(first)), x.byteAt(scales.Add(first).Add(kernel.U(4))), x.byteAt(scales.Add(first).Add(kernel.U(8)))
	six, four, top := kernel.U(63), kernel.U(15), kernel.U(6)
	scale := kernel.Select(early, low.And(six), last.And(four).Or(low.Shr(top).Shl(kernel.U(4))))
	least := kernel.Select(early, mid.And(six), last.Shr(kernel.U(4)).Or(mid.Shr(top).Shl(kernel.U(4))))
	d, m := x.half(at).Mul(scale.F32()), x.half(at.Add(kernel.U(2))).Mul(least.F32())
	return d.Mul(q.F32()).Sub(m)
}

// q6K: the low four bits of 256 elements, then the high two, then a scale for
// each 16, then the scale of these.
func (x quantised) q6K(at, j kernel.U32) kernel.F32 {
	side, quarter, l := j.Shr(kernel.U(7)), j.Shr(kernel.U(5)).And(kernel.U(3)), j.And(kernel.U(31))
	low := x.nibble(at.Add(side.Shl(kernel.U(6))).Add(quarter.And(kernel.U(1)).Shl(kernel.U(5))).Add(l), quarter.Ge(kernel.U(2)))
	high := x.byteAt(at.Add(kernel.U(128)).Add(side.Shl(kernel.U(5))).Add(l)).Shr(quarter.Shl(kernel.U(1))).And(kernel.U(3))
	scale := x.signed(at.Add(kernel.U(192)).Add(j.Shr(kernel.U(4))))
	return x.half(at.Add(kernel.U(208))).Mul(scale).Mul(low.Or(high.Shl(kernel.U(4))).F32().Sub(kernel.F(32)))
}
