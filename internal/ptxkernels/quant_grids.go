package ptxkernels

import (
	"github.com/rayo-go/rayo/ptx"
)

// eight returns a levels.four function for a format that decodes the eight levels of a lane in a part at once. It keeps the
// second four for the next step.
func eight(f func(r, part int) [2]ptx.B32) func(r, part, step int) ptx.B32 {
	had := map[levelWord][2]ptx.B32{}
	return func(r, part, step int) ptx.B32 {
		key := levelWord{r: r, off: part}
		if step == 0 {
			had[key] = f(r, part)
		}
		return had[key][step]
	}
}

// negate negates the levels whose bit is set, of four. No level is 0.
func (c *levelLane) negate(v ptx.B32, bits ptx.U32) ptx.B32 {
	// Move bit i to bit 8i+7, then copy it to all bits of its byte.
	mask := bits.Mul(ptx.U(0x10204080)).Permute(ptx.U(0), ptx.U(0xba98)).B32()
	if c.code.odd { // flip all bits but the lowest
		return v.Xor(mask.And(ptx.B(0xfefefefe)))
	}
	return v.Xor(mask).U32().Add(mask.And(ptx.B(0x01010101)).U32()).B32()
}

// signed returns the eight levels of a lane in a part. f returns the unsigned levels and the bits of the signs.
func (c *levelLane) signed(l *levels, f func(r, part int) ([2]ptx.B32, ptx.U32)) *levels {
	l.four = eight(func(r, part int) [2]ptx.B32 {
		v, signs := f(r, part)
		return [2]ptx.B32{c.negate(v[0], signs.And(ptx.U(15))), c.negate(v[1], signs.Shr(ptx.U(4)))}
	})
	return l
}

// even adds the eighth sign to seven signs, so that the number of negative weights is even.
func even(signs ptx.U32) ptx.U32 {
	return signs.CountOnes().Shl(ptx.U(7)).And(ptx.U(0x80)).Or(signs)
}

// odd returns 2v+1, where v is the field of a word at bit at, with the given mask.
func odd(w ptx.U32, at int, mask uint32) ptx.S32 {
	if at == 0 {
		w = w.Shl(ptx.U(1))
	} else {
		w = w.Shr(ptx.N(at - 1))
	}
	return w.And(ptx.U(2 * mask)).Or(ptx.U(1)).S32()
}

// byteIn returns one byte of a row, wordIn two.
func byteIn(p ptx.Shared[ptx.U8], off int) ptx.U32 { return p.Offset(off).Load().U32() }
func wordIn(p ptx.Shared[ptx.U8], off int) ptx.U32 {
	return ptx.CastShared[ptx.U16](p).Offset(off / 2).Load().U32()
}

// word16 returns two bytes at off.
func (c *levelLane) word16(r, off int) ptx.U32 {
	at := levelWord{r: r, off: -1 - off}
	w, ok := c.had[at]
	if !ok {
		w = wordIn(c.row[r], off).B32()
		c.had[at] = w
	}
	return w.U32()
}

// half0 returns the factor of all weights of a block, which is the first number of the block.
func (c *levelLane) half0(r int) ptx.F32 { return c.half(r, 0) }

func (c *levelLane) iq2XXS() *levels {
	shift := c.quad.Mul(ptx.U(7))
	return c.signed(&levels{
		whole: c.half0,
		sub:   func(r, part, _ int) ptx.S32 { return odd(c.fixed(r, 6+8*part).U32(), 28, 15) },
	}, func(r, part int) ([2]ptx.B32, ptx.U32) {
		v := c.gridCode(byteIn(c.row[r].At(c.quad), 2+8*part)).Load2()
		return v, even(c.fixed(r, 6+8*part).U32().Shr(shift).And(ptx.U(0x7f)))
	})
}

func (c *levelLane) iq2XS() *levels {
	two := c.quad.Shl(ptx.U(1))
	return c.signed(&levels{
		lanes: true,
		whole: c.half0,
		sub:   func(r, part, step int) ptx.S32 { return odd(c.fixed(r, 66+part&^3).U32(), 8*(part%4)+4*step, 15) },
	}, func(r, part int) ([2]ptx.B32, ptx.U32) {
		v := wordIn(c.row[r].At(two), 2+8*part)
		return c.gridCode(v.And(ptx.U(0x1ff))).Load2(), even(v.Shr(ptx.U(9)))
	})
}

func (c *levelLane) iq2S() *levels {
	two := c.quad.Shl(ptx.U(1))
	return c.signed(&levels{
		lanes: true,
		whole: c.half0,
		sub:   func(r, part, step int) ptx.S32 { return odd(c.fixed(r, 74+part&^3).U32(), 8*(part%4)+4*step, 15) },
	}, func(r, part int) ([2]ptx.B32, ptx.U32) {
		high := c.fixed(r, 66+part&^3).U32().Shr(two.Add(ptx.N(8 * (part % 4)))).And(ptx.U(3))
		at := c.row[r].At(c.quad)
		return c.gridCode(high.MulAdd(ptx.U(256), byteIn(at, 2+4*part))).Load2(), byteIn(at, 34+4*part)
	})
}

func (c *levelLane) iq3XXS() *levels {
	shift, two := c.quad.Mul(ptx.U(7)), c.quad.Shl(ptx.U(1))
	return c.signed(&levels{
		whole: c.half0,
		sub:   func(r, part, _ int) ptx.S32 { return odd(c.fixed(r, 66+4*part).U32(), 28, 15) },
	}, func(r, part int) ([2]ptx.B32, ptx.U32) {
		codes := wordIn(c.row[r].At(two), 2+8*part)
		v := [2]ptx.B32{c.gridCode(codes.And(ptx.U(0xff))).Load(), c.gridCode(codes.Shr(ptx.U(8))).Load()}
		return v, even(c.fixed(r, 66+4*part).U32().Shr(shift).And(ptx.U(0x7f)))
	})
}

func (c *levelLane) iq3S() *levels {
	two := c.quad.Shl(ptx.U(1))
	return c.signed(&levels{
		whole: c.half0,
		sub:   func(r, part, _ int) ptx.S32 { return odd(c.fixed(r, 106).U32(), 4*part, 15) },
	}, func(r, part int) ([2]ptx.B32, ptx.U32) {
		codes, high := wordIn(c.row[r].At(two), 2+8*part), byteIn(c.row[r], 66+part).Shr(two)
		v := [2]ptx.B32{
			c.gridCode(high.And(ptx.U(1)).MulAdd(ptx.U(256), codes.And(ptx.U(0xff)))).Load(),
			c.gridCode(high.And(ptx.U(2)).MulAdd(ptx.U(128), codes.Shr(ptx.U(8)))).Load(),
		}
		return v, byteIn(c.row[r].At(c.quad), 74+4*part)
	})
}

// shift returns four levels of a shifted grid, whose nibbles are 0 to 2. It multiplies them by 8
// and adds 2 unless the bit is set, so a level has the offset 9.
func shift(v ptx.B32, bit ptx.U32) ptx.B32 {
	const two = 0x02020202
	return v.And(ptx.B(lowNibbles)).U32().MulAdd(ptx.U(8), bit.MulAdd(ptx.U(1<<32-two), ptx.U(two))).B32()
}

// shifted1 returns eight levels of a shifted grid. The code is three bits of high and the byte at off.
func (c *levelLane) shifted1(r, off int, high, minus ptx.U32) [2]ptx.B32 {
	v := c.gridCode(high.And(ptx.U(7)).MulAdd(ptx.U(256), byteIn(c.row[r].At(c.quad), off))).Load()
	return [2]ptx.B32{shift(v, minus), shift(v.Shr(ptx.U(4)), minus)}
}

func (c *levelLane) iq1S() *levels {
	three := c.quad.Mul(ptx.U(3))
	return &levels{
		four: eight(func(r, part int) [2]ptx.B32 {
			high := c.word16(r, 34+2*part)
			return c.shifted1(r, 2+4*part, high.Shr(three), high.Shr(ptx.U(15)))
		}),
		whole: c.half0,
		sub:   func(r, part, _ int) ptx.S32 { return odd(c.word16(r, 34+2*part), 12, 7) },
	}
}

func (c *levelLane) iq1M() *levels {
	four := c.quad.Shl(ptx.U(2))
	return &levels{
		lanes: true,
		four: eight(func(r, part int) [2]ptx.B32 {
			high := c.fixed(r, 32+part*2&^3).U32().Shr(four.Add(ptx.N(16 * (part % 2))))
			return c.shifted1(r, 4*part, high, high.Shr(ptx.U(3)).And(ptx.U(1)))
		}),
		whole: func(r int) ptx.F32 { // each word of factors holds four of its bits
			bits := ptx.U(0)
			for i := range 4 {
				bits = bits.Or(c.word16(r, 48+2*i).Shr(ptx.U(12)).Shl(ptx.N(4 * i)))
			}
			return bits.HalfBits().F32()
		},
		sub: func(r, part, step int) ptx.S32 {
			n := 2*part + step
			return odd(c.word16(r, 48+2*(n/4)), 3*(n%4), 7)
		},
	}
}
