package ptxkernels

import (
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/ptx"
)

// levelDecoders has the decoders of the formats. Their constants are positions of bytes and bits,
// which block.Layout describes too; the tests compare the results with package block.
var levelDecoders = map[block.Format]*levelDecoder{
	block.Q4_1:   {split: true, mins: true, unsigned: true, unit: 1, open: func(c *levelLane) *levels { return c.affine(20, false) }},
	block.Q5_1:   {split: true, mins: true, unsigned: true, unit: 1, open: func(c *levelLane) *levels { return c.affine(24, true) }},
	block.IQ4_NL: {split: true, wide: true, unit: 1, order: orderHalves, table: table(block.IQ4_NL), open: (*levelLane).iq4NL},
	block.IQ4_XS: {split: true, wide: true, unit: 1.0 / 4, order: orderHalves, table: table(block.IQ4_XS), open: (*levelLane).iq4XS},
	block.MXFP4:  {split: true, unit: 1, order: orderHalves, table: table(block.MXFP4), open: (*levelLane).mxfp4},
	block.NVFP4:  {split: true, unit: 128, order: orderNVFP4, table: table(block.NVFP4), open: (*levelLane).nvfp4},

	block.Q2_K:  {split: true, unsigned: true, unit: 1, open: (*levelLane).q2K},
	block.Q3_K:  {split: true, wide: true, unit: 1.0 / 128, open: (*levelLane).q3K},
	block.TQ1_0: {split: true, unsigned: true, offset: 2, unit: 1.0 / 64, trits: true, order: orderTQ1, open: (*levelLane).tq1},
	block.TQ2_0: {split: true, mins: true, unsigned: true, offset: 1, unit: 1, open: (*levelLane).tq2},
	block.Q2_0:  {split: true, mins: true, unsigned: true, offset: 1, unit: 1, order: strided(4), open: (*levelLane).q2},
	block.Q1_0:  {split: true, wide: true, unit: -1.0 / 64, factors: 1, order: strided(8), open: (*levelLane).q1},

	block.IQ1_S:   {shifted: true, unsigned: true, offset: 9, unit: 1.0 / 8, grid: grid(block.IQ1_S), copies: 4, factors: 7, open: (*levelLane).iq1S, own: (*levelLane).ownIQ1S},
	block.IQ1_M:   {shifted: true, unsigned: true, offset: 9, unit: 1.0 / 8, grid: grid(block.IQ1_M), copies: 4, factors: 7, open: (*levelLane).iq1M, own: (*levelLane).ownIQ1M},
	block.IQ2_XXS: {unit: 1.0 / 8, grid: grid(block.IQ2_XXS), copies: 32, factors: 15, signs: sevenSigns, open: (*levelLane).iq2XXS},
	block.IQ2_XS:  {unit: 1.0 / 8, grid: grid(block.IQ2_XS), copies: 8, factors: 15, signs: sevenSigns, open: (*levelLane).iq2XS, own: (*levelLane).ownIQ2XS},
	block.IQ2_S:   {unit: 1.0 / 8, grid: grid(block.IQ2_S), copies: 8, factors: 15, signs: eightSigns, open: (*levelLane).iq2S, own: (*levelLane).ownIQ2S},
	block.IQ3_XXS: {unit: 1.0 / 4, grid: grid(block.IQ3_XXS), copies: 32, factors: 15, signs: sevenSigns, open: (*levelLane).iq3XXS},
	block.IQ3_S:   {unit: 1, grid: grid(block.IQ3_S), copies: 16, factors: 15, open: (*levelLane).iq3S},
}

// table and grid return the levels of codes.
func table(f block.Format) []int8     { return f.Layout().Level.Table }
func grid(f block.Format) *block.Grid { return f.Layout().Level.Grid }

// affine decodes Q4_1 and Q5_1: a block has a scale, a summand, the fifth bits (Q5_1 only), and nibbles.
func (c *levelLane) affine(size int, five bool) *levels {
	quad4 := c.quad.Shl(ptx.U(2))
	fifths := map[levelWord]ptx.U32{}
	return &levels{
		four: func(r, part, step int) ptx.B32 {
			v := nibbleBytes(c.lane(r, size*part+size-16), step == 1)
			if !five {
				return v
			}
			at := levelWord{r: r, off: part}
			if step == 0 {
				fifths[at] = c.fixed(r, size*part+4).U32().Shr(quad4)
			}
			four := fifths[at].Shr(ptx.N(16 * step)).And(ptx.U(15))
			return v.Or(four.Mul(ptx.U(0x02040810)).And(ptx.U(0x10101010)).B32()) // move bit i to bit 8i+4
		},
		scale: func(r, part, _ int) ptx.F32 { return c.half(r, size*part) },
		mins: func(r int) [2]ptx.BF16x2 {
			p := ptx.CastShared[ptx.F16](c.row[r].At(c.quad.Mul(ptx.N(2 * size)))).Offset(1)
			return halfPair(p.Load().F32(), p.Offset(size/2).Load().F32())
		},
	}
}

// look returns the levels of eight 4-bit codes, in the order of the codes. The low three bits of a
// code select a byte of two words; the fourth bit selects the first two words or the last two.
func look(t [4]ptx.B32, w ptx.B32) (y [2]ptx.B32) {
	low, high := w.And(ptx.B(0x77777777)), w.Shr(ptx.U(1)).And(ptx.B(0x44444444)).Or(ptx.B(0x32103210))
	for i := range y {
		by := ptx.N(16 * i)
		sel := low.Shr(by).U32()
		y[i] = t[0].Permute(t[1], sel).Permute(t[2].Permute(t[3], sel), high.Shr(by).U32())
	}
	return y
}

// summandsOf looks up four codes, in 16 bits, in one half of a table of summands. For a code of the
// other half, the permutation repeats the top bit of a byte, so the result is 0, or -1 if the byte
// is negative.
func summandsOf(t [4]ptx.B32, second bool, codes ptx.U32) ptx.B32 {
	if second {
		return t[2].Permute(t[3], codes.Xor(ptx.U(0x8888)))
	}
	return t[0].Permute(t[1], codes)
}

// orderHalves is the order of blocks of 32 nibbles. A lane holds four bytes; the element in the
// high half of a byte is 16 elements after the element in the low half.
func orderHalves(slot ptx.U32) [4]ptx.U32 {
	first := slot.Shr(ptx.U(3)).MulAdd(ptx.U(32), slot.And(ptx.U(3)).Shl(ptx.U(2))).Add(slot.Shr(ptx.U(1)).And(ptx.U(2)))
	return [4]ptx.U32{first, first.Add(ptx.U(16)), first.Add(ptx.U(1)), first.Add(ptx.U(17))}
}

// looked returns the levels of a format with a table of 16 levels. A part has 16 bytes of nibbles.
// With digits, a level is the sum of two summands.
func (c *levelLane) looked(at func(part int) int) *levels {
	if !c.digits {
		t := c.table.levels.Load4()
		return &levels{four: eight(func(r, part int) [2]ptx.B32 { return look(t, c.lane(r, at(part))) })}
	}
	t := c.table.levels.Offset(4).Load4()
	half := func(second bool) func(r, part, step int) ptx.B32 {
		return func(r, part, step int) ptx.B32 { return summandsOf(t, second, c.lane16(r, at(part)+2*step)) }
	}
	return &levels{four: half(false), plus: half(true)}
}

func (c *levelLane) iq4NL() *levels {
	l := c.looked(func(part int) int { return 18*part + 2 })
	l.scale = func(r, part, _ int) ptx.F32 { return c.half(r, 18*part) }
	return l
}

func (c *levelLane) iq4XS() *levels {
	subs := map[levelWord]ptx.B32{}
	l := c.looked(func(part int) int { return 16*part + 8 })
	l.whole = func(r int) ptx.F32 { return c.half(r, 0) }
	l.sub = func(r, part, _ int) ptx.S32 {
		key := levelWord{r: r, off: part % 2}
		w, ok := subs[key]
		if !ok { // the factors of four parts, times 4, as signed bytes
			high := c.fixed(r, 0).Shr(ptx.N(16 + 2*key.off)).And(ptx.B(0x3333))
			high = high.Or(high.Shl(ptx.U(8))).And(ptx.B(0x00ff00ff))
			high = high.Or(high.Shl(ptx.U(4))).Shl(ptx.U(6)).And(ptx.B(0xc0c0c0c0))
			w = shifted(c.fixed(r, 4), 2-4*key.off).And(ptx.B(0x3c3c3c3c)).Xor(high).Xor(ptx.B(topBits))
			subs[key] = w
		}
		return signedByte(w, part/2)
	}
	return l
}

func (c *levelLane) mxfp4() *levels {
	l := c.looked(func(part int) int { return 17*part + 1 })
	l.scale = func(r, part, _ int) ptx.F32 {
		// The bits of 2**(v-128). For v above 1, the second number is the smaller one.
		v := c.row[r].Offset(17 * part).Load().U32().S32()
		small := v.MulAdd(c.bit23.Shr(ptx.U(2)), ptx.S(1<<21))
		return v.MulAdd(c.bit23, ptx.S(-1<<23)).Max(small).B32().Float()
	}
	return l
}

// orderNVFP4 is the order of NVFP4. A lane holds two of each 8 bytes; the element in the high half
// of a byte is 8 elements after the element in the low half.
func orderNVFP4(slot ptx.U32) [4]ptx.U32 {
	first := slot.Shr(ptx.U(2)).MulAdd(ptx.U(16), slot.And(ptx.U(3)).Shl(ptx.U(1)))
	return [4]ptx.U32{first, first.Add(ptx.U(8)), first.Add(ptx.U(1)), first.Add(ptx.U(9))}
}

func (c *levelLane) nvfp4() *levels {
	scales := map[levelWord][2]ptx.F16x2{}
	twice := c.quad.Shl(ptx.U(1))
	codes := func(r, part, step int) ptx.U32 {
		off := 36*(part/2) + 4 + 16*(part%2) + 8*step
		at := levelWord{r: r, off: -1 - off}
		w, ok := c.had[at]
		if !ok {
			w = wordIn(c.row[r].At(twice), off).B32()
			c.had[at] = w
		}
		return w.U32()
	}
	l := &levels{
		steps: true,
		scale: func(r, part, step int) ptx.F32 {
			key := levelWord{r: r, off: part / 2}
			two, ok := scales[key]
			if !ok {
				w := c.fixed(r, 36*key.off).And(ptx.B(0x7f7f7f7f))
				nans := w.U32().Add(ptx.U(0x01010101)).B32().Permute(ptx.B(0), ptx.U(0xba98)) // NaN is replaced by 0
				w = w.And(nans.Not())
				// As float16 bits they have another exponent bias, so the numbers are multiplied by 1/128.
				two = [2]ptx.F16x2{w.Shl(ptx.U(7)).And(ptx.B(0x3f803f80)).F16x2(), w.Shr(ptx.U(1)).And(ptx.B(0x3f803f80)).F16x2()}
				scales[key] = two
			}
			low, high := two[step].Halves()
			if part%2 == 1 {
				return high.F32()
			}
			return low.F32()
		},
	}
	if !c.digits {
		t := c.table.levels.Load4()
		l.four = func(r, part, step int) ptx.B32 { return look(t, codes(r, part, step).B32())[0] }
		return l
	}
	t := c.table.levels.Offset(4).Load4()
	l.four = func(r, part, step int) ptx.B32 { return summandsOf(t, false, codes(r, part, step)) }
	l.plus = func(r, part, step int) ptx.B32 { return summandsOf(t, true, codes(r, part, step)) }
	return l
}

func (c *levelLane) q2K() *levels {
	nibbles := func(r, part, step int, high bool) ptx.B32 {
		return nibbleBytes(c.fixed(r, 4*(part/2)), high)
	}
	return &levels{
		fours: 0xaa,
		// Levels times small factors are at most 45.
		four: func(r, part, step int) ptx.B32 {
			v := c.pairs(r, 16, part, step)
			if c.digits && part%2 == 1 { // saves a shift
				v = c.lane(r, 16+32*(part/4)+16*step).Shr(ptx.N(2 * (part%4 - 1))).And(ptx.B(0x0c0c0c0c))
			}
			return v.U32().Mul(byteAt(nibbles(r, part, step, false), 2*(part%2)+step)).B32()
		},
		whole: func(r int) ptx.F32 { return c.half(r, 80) },
		less: func(r, part, step int) ptx.B32 {
			return bytesOf(nibbles(r, part, step, true), 2*(part%2)+step)
		},
		lessWhole: func(r int) ptx.F32 { return c.half(r, 82) },
	}
}

// pairs returns four 2-bit fields. Each 32 bytes hold the fields of 128 weights.
func (c *levelLane) pairs(r, off, part, step int) ptx.B32 {
	return c.lane(r, off+32*(part/4)+16*step).Shr(ptx.N(2 * (part % 4))).And(ptx.B(0x03030303))
}

// shifted shifts a word left, or right if left is negative.
func shifted(w ptx.B32, left int) ptx.B32 {
	if left < 0 {
		return w.Shr(ptx.N(-left))
	}
	return w.Shl(ptx.N(left))
}

func (c *levelLane) q3K() *levels {
	subs := map[levelWord]ptx.B32{} // times 4, as signed bytes
	return &levels{
		steps: true,
		// Levels are multiplied by 32: they are in the high bits of bytes, with the top bit flipped.
		four: func(r, part, step int) ptx.B32 {
			low := shifted(c.lane(r, 32+32*(part/4)+16*step), 5-2*(part%4)).And(ptx.B(0x60606060))
			return shifted(c.lane(r, 16*step), 7-part).And(ptx.B(topBits)).Xor(low).Xor(ptx.B(topBits))
		},
		whole: func(r int) ptx.F32 { return c.half(r, 108) },
		sub: func(r, part, step int) ptx.S32 {
			key := levelWord{r: r, off: part / 2}
			w, ok := subs[key]
			if !ok {
				low := shifted(c.fixed(r, 96+4*(key.off%2)), 2-4*(key.off/2)).And(ptx.B(0x3c3c3c3c))
				high := shifted(c.fixed(r, 104), 6-2*key.off).And(ptx.B(0xc0c0c0c0))
				w = low.Xor(high).Xor(ptx.B(topBits))
				subs[key] = w
			}
			return signedByte(w, 2*(part%2)+step)
		},
	}
}

func (c *levelLane) tq2() *levels {
	return &levels{
		four:  func(r, part, step int) ptx.B32 { return c.pairs(r, 0, part, step) },
		whole: func(r int) ptx.F32 { return c.half(r, 64) },
		mins:  c.offsets(func(r int) ptx.F32 { return c.half(r, 64) }),
	}
}

// offsets returns the levels.mins function of levels with the offset 1. scale returns the scale of
// parts 2t and 2t+1.
func (c *levelLane) offsets(scale func(r int) ptx.F32) func(r int) [2]ptx.BF16x2 {
	if !c.digits {
		return nil
	}
	return func(r int) [2]ptx.BF16x2 {
		d := scale(r).Neg()
		return halfPair(d, d)
	}
}

// halfAt returns the float16 of a row at an even offset.
func (c *levelLane) halfAt(r int, at ptx.U32) ptx.F32 {
	return ptx.CastShared[ptx.F16](c.row[r].At(at)).Load().F32()
}

// tq1 decodes TQ1_0. A lane holds 12 bytes of five digits in base 3 and one byte of four. The first four digits of a byte are the
// levels of a step; the fifth digits of four bytes are those of another. Levels are -64, 0 and 64: see shareTrits.
func (c *levelLane) tq1() *levels {
	words, bytes := map[levelWord]ptx.B32{}, map[levelWord]func(i, size int, offset ptx.U32) ptx.U32{}
	return &levels{
		four: func(r, part, step int) ptx.B32 {
			n, top := 2*part+step, 6 // top: the lower of the two bits of a level
			var y ptx.B32
			switch {
			case n == 15:
				y = c.tritsAt(byteIn(c.row[r].At(c.quad), 48).MulAdd(ptx.N(4*c.table.copies.trits), c.table.tritCopy))
			case n >= 12:
				w := func(i int) ptx.B32 { return words[levelWord{r: r, off: 4*(n-12) + i}] }
				y, top = w(0).Permute(w(1), ptx.U(0x0050)).Permute(w(2).Permute(w(3), ptx.U(0x7200)), ptx.U(0x7610)), 4
			default:
				at := levelWord{r: r, off: n / 4}
				if bytes[at] == nil {
					bytes[at] = c.fourBytes(c.mine[r], 16*(n/4))
				}
				y = c.tritsAt(bytes[at](n%4, 4*c.table.copies.trits, c.table.tritCopy))
				words[levelWord{r: r, off: n}] = y
			}
			if !c.digits {
				return y.Shr(ptx.N(top)).And(ptx.B(0x03030303)).Xor(ptx.B(0x02020202))
			}
			return shifted(y, 6-top).And(ptx.B(0xc0c0c0c0))
		},
		whole: func(r int) ptx.F32 {
			if !c.digits {
				return c.half(r, 52).Mul(ptx.F(64))
			}
			return c.half(r, 52)
		},
	}
}

// tritsAt returns the digits of a byte, whose word is at an offset in their table.
func (c *levelLane) tritsAt(at ptx.U32) ptx.B32 {
	return ptx.CastShared[ptx.B32](c.table.trits.At(at)).Load()
}

// orderTQ1 is the order of TQ1_0: see tq1. Each 32 bytes, then each 16, have the digits of elements 32 or 16 apart.
func orderTQ1(slot ptx.U32) (y [4]ptx.U32) {
	n, lane := slot.Shr(ptx.U(2)), slot.And(ptx.U(3))
	four, rest := n.Shr(ptx.U(2)), n.And(ptx.U(3))
	word := lane.Shl(ptx.U(2))
	// The bytes of words 0 to 2, then the fifth digits of the words.
	first := ptx.Select(four.Eq(ptx.U(2)), ptx.U(160), four.Shl(ptx.U(4))).Add(word).Add(rest)
	step := ptx.Select(four.Eq(ptx.U(2)), ptx.U(16), ptx.U(32))
	fifth := ptx.Select(rest.Eq(ptx.U(2)), ptx.U(160+4*16), rest.MulAdd(ptx.U(16), ptx.U(4*32))).Add(word)
	last := rest.Eq(ptx.U(3))
	fifth = ptx.Select(last, lane.Add(ptx.U(240)), fifth)
	late := four.Eq(ptx.U(3))
	first = ptx.Select(late, fifth, first)
	step = ptx.Select(late, ptx.Select(last, ptx.U(4), ptx.U(1)), step)
	for i := range y {
		y[i] = step.MulAdd(ptx.N(i), first)
	}
	return y
}

// q2 decodes Q2_0. A lane holds one word: 16 weights of a block of 64.
func (c *levelLane) q2() *levels {
	return &levels{
		four: func(r, part, step int) ptx.B32 {
			return c.lane(r, 18*(part/2)+2).Shr(ptx.N(2 * (2*(part%2) + step))).And(ptx.B(0x03030303))
		},
		span:  2,
		scale: func(r, part, _ int) ptx.F32 { return c.half(r, 18*(part/2)) },
		mins:  c.offsets(func(r int) ptx.F32 { return c.halfAt(r, c.quad.Mul(ptx.U(18))) }),
	}
}

// q1 decodes Q1_0. A lane holds one word: 32 weights of a block of 128. The levels are 64 and -64, and the weight is
// -level/64. Multiplications move bits beside the unit for logic, which limits the speed.
func (c *levelLane) q1() *levels {
	doubled := map[levelWord][8]ptx.U32{}
	return &levels{
		four: func(r, part, step int) ptx.B32 {
			at := levelWord{r: r, off: part / 4}
			w, ok := doubled[at]
			if !ok {
				w[7] = c.lane(r, 18*at.off+2).U32()
				for i := 6; i >= 0; i-- { // c.factor is 2
					w[i] = w[i+1].Mul(c.factor.U32())
				}
				doubled[at] = w
			}
			return w[2*(part%4)+step].B32().And(ptx.B(topBits)).Xor(c.constants.levels)
		},
		span:  4,
		scale: func(r, part, _ int) ptx.F32 { return c.half(r, 18*(part/4)) },
	}
}
