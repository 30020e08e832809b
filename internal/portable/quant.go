//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// quantised reads an array of blocks by single elements or by four neighbouring elements.
type quantised struct{ wordBlocks }

// inputBlocks declares an operand of a quantised type, and the array of its levels if gridOf
// returns levels: see planner.withGrid.
func inputBlocks(b *kernel.Builder, name string, t op.DType) quantised {
	x := quantised{wordBlocks{b: b, format: t.Block(), one: kernel.Input[kernel.U32](b, name).At}}
	if gridOf(t) != nil {
		x.grid = kernel.Input[kernel.F32](b, name+"_grid").At
	}
	return x
}

// fourOf holds four neighbouring elements of a block with one scale: element i is scale·(byte i of
// bytes - less) - least.
type fourOf struct {
	bytes kernel.U32
	less  int
	scale kernel.F32
	least *kernel.F32 // nil for 0
}

// foursOf returns a decoder for each format: it decodes elements j to j+3 of the block at byte at,
// where j is a multiple of four. Package block describes the layouts. The fields of these blocks
// begin at even bytes. It is a function so that pages without quantised types do not load the decoders.
func foursOf() map[block.Format]func(x quantised, at, j kernel.U32) fourOf {
	return map[block.Format]func(x quantised, at, j kernel.U32) fourOf{
		block.Q4_0: quantised.q4_0,
		block.Q5_0: quantised.q5_0,
		block.Q8_0: quantised.q8_0,
		block.Q4_K: func(x quantised, at, j kernel.U32) fourOf { return x.q45K(at, j, false) },
		block.Q5_K: func(x quantised, at, j kernel.U32) fourOf { return x.q45K(at, j, true) },
		block.Q6_K: quantised.q6K,
	}
}

// four decodes elements i to i+3 of the array, where i is a multiple of four.
func (x quantised) four(i kernel.U32) fourOf {
	n := kernel.U(uint32(x.format.Elements()))
	return foursOf()[x.format](x, i.Div(n).Mul(kernel.U(uint32(x.format.Bytes()))), i.Mod(n))
}

// element returns element i of the array.
func (x quantised) element(i kernel.U32) kernel.F32 {
	u := kernel.U
	if foursOf()[x.format] == nil {
		v, odd, upper := layoutReader{x}.quad(i.Shr(u(2))), i.And(u(1)).Eq(u(1)), i.And(u(2)).Ne(u(0))
		return kernel.Select(upper, kernel.Select(odd, v.At(3), v.At(2)), kernel.Select(odd, v.At(1), v.At(0)))
	}
	three := u(3)
	f := x.four(i.Sub(i.And(three)))
	v := f.bytes.Shr(i.And(three).Shl(three)).And(u(255)).F32().Sub(kernel.F(float32(f.less))).Mul(f.scale)
	if f.least != nil {
		v = v.Sub(*f.least)
	}
	return v
}

// quad returns elements 4i to 4i+3 of the array.
func (x quantised) quad(i kernel.U32) kernel.Vec4F {
	if foursOf()[x.format] == nil {
		return layoutReader{x}.quad(i)
	}
	f := x.four(i.Shl(kernel.U(2)))
	v := x.whole(f.bytes, f.less).Mul(f.scale.Splat4())
	if f.least != nil {
		v = v.Sub(f.least.Splat4())
	}
	return v
}

// nibbles returns the low or the high four bits of four bytes from an even byte on.
func (x quantised) nibbles(at kernel.U32, high kernel.Bool) kernel.U32 {
	return nibbles(x.word(at).Shr(kernel.Select(high, kernel.U(4), kernel.U(0))), false)
}

func (x quantised) q4_0(at, j kernel.U32) fourOf {
	u := kernel.U
	return fourOf{bytes: x.nibbles(at.Add(u(2)).Add(j.And(u(15))), j.Ge(u(16))), less: 8, scale: x.half(at)}
}

func (x quantised) q5_0(at, j kernel.U32) fourOf {
	u := kernel.U
	q := x.nibbles(at.Add(u(6)).Add(j.And(u(15))), j.Ge(u(16)))
	return fourOf{bytes: q.Or(fifths(x.word(at.Add(u(2))).Shr(j))), less: 16, scale: x.half(at)}
}

func (x quantised) q8_0(at, j kernel.U32) fourOf {
	return fourOf{bytes: signedBytes(x.word(at.Add(kernel.U(2)).Add(j))), less: 128, scale: x.half(at)}
}

// q45K decodes Q4_K, or Q5_K if five is set. A block has eight parts of 32 elements. Each part has
// a scale and a minimum of six bits, and twelve bytes hold all of them.
func (x quantised) q45K(at, j kernel.U32, five bool) fourOf {
	u := kernel.U
	part, l := j.Shr(u(5)), j.And(u(31))
	quants := uint32(16)
	if five {
		quants = 48
	}
	q := x.nibbles(at.Add(u(quants)).Add(part.Shr(u(1)).Shl(u(5))).Add(l), part.And(u(1)).Eq(u(1)))
	if five {
		q = q.Or(ones(x.word(at.Add(u(16)).Add(l)).Shr(part)))
	}
	var w [4]kernel.U32
	for i := range w {
		w[i] = x.word(at.Add(u(uint32(4 * i))))
	}
	d := w[0].UnpackHalf()
	scale, minimum := sixBits(w[1], w[2], w[3], part.And(u(3)).Shl(u(3)), part.Lt(u(4)))
	m := d.At(1).Mul(minimum)
	return fourOf{bytes: q, scale: d.At(0).Mul(scale), least: &m}
}

// q6K decodes Q6_K. A block has the low four bits of 256 elements, then their high two bits, then a
// scale for each 16 elements, and then the scale of these scales.
func (x quantised) q6K(at, j kernel.U32) fourOf {
	u := kernel.U
	side, quarter, l := j.Shr(u(7)), j.Shr(u(5)).And(u(3)), j.And(u(31))
	low := x.nibbles(at.Add(side.Shl(u(6))).Add(quarter.And(u(1)).Shl(u(5))).Add(l), quarter.Ge(u(2)))
	high := x.word(at.Add(u(128)).Add(side.Shl(u(5))).Add(l)).Shr(quarter.Shl(u(1))).And(u(0x03030303)).Shl(u(4))
	scale := at.Add(u(192)).Add(j.Shr(u(4)))
	byteOf := x.one(scale.Shr(u(2))).Shr(scale.And(u(3)).Shl(u(3)))
	return fourOf{bytes: low.Or(high), less: 32, scale: x.half(at.Add(u(208))).Mul(signedByte(byteOf))}
}
