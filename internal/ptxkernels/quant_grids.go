package ptxkernels

import (
	"math/bits"

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

// signed returns the eight levels of a lane in a part. f returns the offset of its signs in the table of signs, and the offsets of its
// codes in the grid.
func (c *levelLane) signed(l *levels, f func(r, part int) (signs ptx.U32, codes []ptx.U32)) *levels {
	l.four = eight(func(r, part int) [2]ptx.B32 {
		at, codes := f(r, part)
		signs := ptx.CastShared[ptx.B32](c.table.signs.At(at))
		if c.code.selected() {
			v := c.gridWord(codes[0]).Or(signs.Load())
			return [2]ptx.B32{c.either(v), c.either(v.Shr(ptx.U(16)))}
		}
		mask := signs.Load2()
		return [2]ptx.B32{negate(c.gridWord(codes[0]), mask[0]), negate(c.gridWord(codes[1]), mask[1])}
	})
	return l
}

// either returns the levels that four nibbles select.
func (c *levelLane) either(v ptx.B32) ptx.B32 {
	levels, _ := c.code.gridCodes()
	return c.constants.levels.Permute(ptx.B(gridSelected(levels)[1]), v.U32())
}

// gridSelected returns a word of positive levels, at most four, and a word of negative ones.
func gridSelected(levels []int8) (w [2]uint32) {
	var v [8]int8
	for i, l := range levels[:min(4, len(levels))] {
		v[i], v[i+4] = l, -l
	}
	return [2]uint32(levelWords(v[:]))
}

// negate negates the levels whose bytes of the mask are set. No level is 0, so each byte of the negatives borrows from the next.
func negate(v, mask ptx.B32) ptx.B32 {
	return v.And(mask.Not()).Or(ptx.U(0x01010100).Sub(v.U32()).B32().And(mask))
}

// gridWord returns the word at an offset in the grid.
func (c *levelLane) gridWord(at ptx.U32) ptx.B32 {
	return ptx.CastShared[ptx.B32](c.table.grid.At(at)).Load()
}

// gridAt returns the offset of the lane's copy of the word of a code: a byte and the bits above it, which are at their place in the offset.
func (c *levelLane) gridAt(low, high ptx.U32) ptx.U32 {
	return low.MulAdd(ptx.N(c.gridEntry()), high.Or(c.table.gridCopy))
}

// byteEntry returns the offset of the entry of byte i of a word in a table whose entries have size bytes, plus offset: one
// instruction that adds products of bytes.
func byteEntry(w ptx.B32, i, size int, offset ptx.U32) ptx.U32 {
	return w.Dot4Unsigned(ptx.B(uint32(size)<<(8*i)), offset)
}

// gridByte is gridAt for byte i of a word.
func (c *levelLane) gridByte(w ptx.U32, i int, high ptx.U32) ptx.U32 {
	return byteEntry(w.B32(), i, c.gridEntry(), high.Or(c.table.gridCopy))
}

// gridField is gridAt for a code that is a field of n bits.
func (c *levelLane) gridField(w ptx.U32, at, n int) ptx.U32 {
	return field(w, at, n, c.gridEntry()).Or(c.table.gridCopy)
}

// field moves a field of a word to the offset of its entry in a table. The field begins at bit at and
// has the given number of bits; entries have size bytes.
func field(w ptx.U32, at, n, size int) ptx.U32 {
	by := bits.TrailingZeros(uint(size))
	w = shifted(w.B32(), by-at).U32()
	return w.And(ptx.N((1<<n - 1) << by))
}

// laneField is field for a field of n bits of each of the four lanes, the first at bit at. distance is the number of bits between them.
func (c *levelLane) laneField(w ptx.U32, at, distance, n, size int) ptx.U32 {
	by := bits.TrailingZeros(uint(size))
	w = w.FunnelRight(w, c.quad.MulAdd(ptx.N(distance), ptx.N((at-by)&31))) // rotate
	return w.And(ptx.N((1<<n - 1) << by))
}

// gridEntry is the size in bytes of the copies of an entry of the grid.
func (c *levelLane) gridEntry() int { return 4 * c.table.copies.grid }

// signAt returns the offset of the lane's copy of eight signs.
func (c *levelLane) signAt(signs ptx.U32) ptx.U32 {
	return signs.MulAdd(ptx.N(c.signEntry()), c.table.signCopy)
}

// signEntry is the size in bytes of the copies of an entry of the table of signs.
func (c *levelLane) signEntry() int { return 4 * c.table.copies.signs }

// odd returns 2n+1, where n is the field of a word at bit at, at most c.code.factors.
func (c *levelLane) odd(w ptx.U32, at int) ptx.S32 {
	x := shifted(w.B32(), 1-at)
	if at+bits.Len32(c.code.factors) < 32 {
		x = x.And(c.factor)
	}
	return x.Or(ptx.B(1)).S32()
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
	return c.signed(&levels{
		whole: c.half0,
		sub:   func(r, part, _ int) ptx.S32 { return c.odd(c.fixed(r, 6+8*part).U32(), 28) },
	}, func(r, part int) (ptx.U32, []ptx.U32) {
		code := c.gridAt(byteIn(c.row[r].At(c.quad), 2+8*part), ptx.U(0))
		return c.laneField(c.fixed(r, 6+8*part).U32(), 0, 7, 7, c.signEntry()).Or(c.table.signCopy), []ptx.U32{code}
	})
}

func (c *levelLane) iq2XS() *levels {
	two := c.quad.Shl(ptx.U(1))
	return c.signed(&levels{
		lanes: true,
		whole: c.half0,
		sub:   func(r, part, step int) ptx.S32 { return c.odd(c.fixed(r, 66+part&^3).U32(), 8*(part%4)+4*step) },
	}, func(r, part int) (ptx.U32, []ptx.U32) {
		v := wordIn(c.row[r].At(two), 2+8*part)
		return field(v, 9, 7, c.signEntry()).Or(c.table.signCopy), []ptx.U32{c.gridField(v, 0, 9)}
	})
}

func (c *levelLane) iq2S() *levels {
	return c.signed(&levels{
		lanes: true,
		whole: c.half0,
		sub:   func(r, part, step int) ptx.S32 { return c.odd(c.fixed(r, 74+part&^3).U32(), 8*(part%4)+4*step) },
	}, func(r, part int) (ptx.U32, []ptx.U32) {
		at, size := c.row[r].At(c.quad), c.gridEntry()
		high := c.laneField(c.fixed(r, 66+part&^3).U32(), 8*(part%4), 2, 2, 256*size)
		return c.signAt(byteIn(at, 34+4*part)), []ptx.U32{c.gridAt(byteIn(at, 2+4*part), high)}
	})
}

func (c *levelLane) iq3XXS() *levels {
	two := c.quad.Shl(ptx.U(1))
	return c.signed(&levels{
		whole: c.half0,
		sub:   func(r, part, _ int) ptx.S32 { return c.odd(c.fixed(r, 66+4*part).U32(), 28) },
	}, func(r, part int) (ptx.U32, []ptx.U32) {
		codes := wordIn(c.row[r].At(two), 2+8*part)
		return c.laneField(c.fixed(r, 66+4*part).U32(), 0, 7, 7, c.signEntry()).Or(c.table.signCopy), []ptx.U32{c.gridByte(codes, 0, ptx.U(0)), c.gridByte(codes, 1, ptx.U(0))}
	})
}

func (c *levelLane) iq3S() *levels {
	two := c.quad.Shl(ptx.U(1))
	return &levels{
		whole: c.half0,
		sub:   func(r, part, _ int) ptx.S32 { return c.odd(c.fixed(r, 106).U32(), 4*part) },
		four: eight(func(r, part int) (y [2]ptx.B32) {
			codes, high, size := wordIn(c.row[r].At(two), 2+8*part), c.fixed(r, 66+part&^3).U32(), c.gridEntry()
			for i, mask := range flipped(byteIn(c.row[r].At(c.quad), 74+4*part)) {
				y[i] = c.gridWord(c.gridByte(codes, i, c.laneField(high, 8*(part%4)+i, 2, 1, 256*size))).Xor(mask)
			}
			return y
		}),
	}
}

// flipped returns the bits to flip in eight odd levels, to negate those whose bit is set, of eight: all bits but the lowest.
func flipped(bits ptx.U32) [2]ptx.B32 {
	// Move bit i to bit 8i+7, and bit i+4 to bit 8i+15; then copy them to all bits of their bytes. Bit 7 is there already.
	x := bits.And(ptx.U(0x7f))
	y := [2]ptx.U32{x.Mul(ptx.U(0x10204080)).Permute(ptx.U(0), ptx.U(0xba98)), x.Mul(ptx.U(0x02040800)).Permute(bits, ptx.U(0xcba9))}
	return [2]ptx.B32{y[0].B32().And(ptx.B(0xfefefefe)), y[1].B32().And(ptx.B(0xfefefefe))}
}

// shiftedLevels returns the levels of a shifted grid, which have the offset 9. f returns the offset of the code in the grid, and
// bytes of ones if the lane's weights are shifted by -1/8, else 0. Kernels that multiply by digits use ownShifted instead.
func (c *levelLane) shiftedLevels(l *levels, f func(r, part int) (code ptx.U32, minus ptx.B32)) *levels {
	l.four = eight(func(r, part int) (y [2]ptx.B32) {
		code, minus := f(r, part)
		v, plus := c.gridWord(code), minus.Not().And(ptx.B(0x02020202)).U32()
		for i := range y { // 0, 8 or 16
			y[i] = v.Shl(ptx.N(3 - 2*i)).And(ptx.B(0x18181818)).U32().Add(plus).B32()
		}
		return y
	})
	return l
}

func (c *levelLane) iq1S() *levels {
	return c.shiftedLevels(&levels{
		whole: c.half0,
		sub:   func(r, part, _ int) ptx.S32 { return c.odd(c.word16(r, 34+2*part), 12) },
	}, func(r, part int) (ptx.U32, ptx.B32) {
		high, size := c.word16(r, 34+2*part), c.gridEntry()
		code := c.gridAt(byteIn(c.row[r].At(c.quad), 2+4*part), c.laneField(high, 0, 3, 3, 256*size))
		return code, high.Permute(ptx.U(0), ptx.U(0x9999)).B32()
	})
}

func (c *levelLane) iq1M() *levels {
	four := c.quad.Shl(ptx.U(2))
	return c.shiftedLevels(&levels{
		lanes: true,
		whole: func(r int) ptx.F32 { // each word of 16 bits has four of its bits on top
			top := c.fixed(r, 48).Permute(c.fixed(r, 52), ptx.U(0x7531)).Shr(ptx.U(4)).And(ptx.B(lowNibbles))
			return top.Or(top.Shr(ptx.U(4))).Permute(ptx.B(0), ptx.U(0x4420)).U32().HalfBits().F32()
		},
		sub: func(r, part, step int) ptx.S32 {
			n := 2*part + step
			return c.odd(c.word16(r, 48+2*(n/4)), 3*(n%4))
		},
	}, func(r, part int) (ptx.U32, ptx.B32) {
		high, size := c.fixed(r, 32+part*2&^3).U32(), c.gridEntry()
		code := c.gridAt(byteIn(c.row[r].At(c.quad), 4*part), c.laneField(high, 16*(part%2), 4, 3, 256*size))
		return code, high.FunnelRight(high, four.Add(ptx.N((16*(part%2)-4)&31))).Permute(ptx.U(0), ptx.U(0x8888)).B32()
	})
}
