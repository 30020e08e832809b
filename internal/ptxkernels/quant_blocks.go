package ptxkernels

import (
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// Tensor cores multiply blocks; their products of bf16 are exact. The small integers of a block are
// exact in bf16, and a float32 activation is the sum of three bf16. The dot product of the integers
// of 16 or 32 weights with the activations is then multiplied by the scale of these weights, in
// float32. Therefore the kernel rounds no more than a float32 product.
//
// Lane 4g+t of a warp holds rows g and g+8 of the warp's 16 rows, and four elements of each 16
// weights along a row. Any four elements work if weights and activations have the same order, so
// lanes take elements that are adjacent in memory.

// blockDecoder describes how a kernel reads the weights of a format.
type blockDecoder struct {
	// split selects the four of 32 weights that lane t holds in step s (0 or 1): the four from
	// 16s+4t on if split is set, otherwise the four from 8t+4s on.
	split bool
	mins  bool // each 32 weights have a minimum
	build func(c *blockLane)
	// levels is the decoder of a format whose group is always 256 weights, or nil.
	levels *levelDecoder
}

var blockDecoders = map[block.Format]*blockDecoder{
	block.Q4_0: {split: true, build: func(c *blockLane) { c.small(2, 8, (*blockLane).nibbles) }},
	block.Q5_0: {split: true, build: func(c *blockLane) { c.small(6, 16, (*blockLane).fives) }},
	block.Q8_0: {split: true, build: (*blockLane).q8_0},
	block.Q4_K: {mins: true, build: func(c *blockLane) { c.q45K(false) }},
	block.Q5_K: {mins: true, build: func(c *blockLane) { c.q45K(true) }},
	block.Q6_K: {split: true, build: (*blockLane).q6K},
}

// aligned reports whether all fields of blocks are aligned to their size.
func (c *blockDecoder) aligned() bool { return !c.split && c.levels == nil }

// fits reports whether the format supports rows of k weights: some formats need whole groups.
func (c *blockDecoder) fits(k int) bool { return c.levels == nil || k%digitGroup == 0 }

// tableBytes is the size of the table in shared memory.
func (c *blockDecoder) tableBytes(small bool) int {
	if c.levels == nil {
		return 0
	}
	return c.levels.tableBytes(small)
}

// blockGroup returns the size of the group that blockDecoder.build multiplies at once: one block of
// 256 weights, or eight blocks of 32 weights, or one block of 32 if rows are not multiples of 256
// weights.
func blockGroup(t op.DType, whole bool) (weights, bytes int) {
	f := t.Block()
	weights, bytes = f.Elements(), f.Bytes()
	if whole {
		bytes *= 256 / weights
		weights = 256
	}
	return weights, bytes
}

// bytes in a register.
const (
	magicBytes = 0x43434343 // high bytes of the bf16 from 128 to 255
	lowNibbles = 0x0f0f0f0f
)

// blockLane holds the state of a lane at a group of blocks. A lane has two rows in each tile of
// rows, and each tile takes one mma.
type blockLane struct {
	k       *ptx.Kernel
	weights int
	row     []ptx.Shared[ptx.U8] // the blocks
	mine    []ptx.Shared[ptx.U8] // the blocks, at the lane's offset in 16 bytes (32 unless split)
	only    []int                // the blocks of 32 weights to multiply; nil for all
	quad    ptx.U32              // t, 0 to 3
	// x has, for each tile of columns, the pieces of activations whose products belong to the same
	// sum. A lane has 16 bytes for each 32 weights, 64 bytes apart.
	x [][]ptx.Shared[ptx.B32]
	// sums likewise has the sums of 32 activations; a lane has 4 bytes for each 8 sums.
	sums  [][]ptx.Shared[ptx.B32]
	total [][][4]ptx.Var[ptx.F32] // indexed by tile of rows and tile of columns
	// before, if not nil, is called for each part of 32 weights, in order, before its activations
	// are loaded.
	before func(part int)
	table  sharedTable
	begin  rowBegin
}

// rowBegin is where the rows of a blockLane begin.
type rowBegin uint8

const (
	anywhere   rowBegin = iota // at a multiple of 2
	afterTwo                   // 2 bytes after a multiple of 4
	atMultiple                 // at a multiple of 4
)

// word returns the lane's four bytes at off, which are at a multiple of 2.
func (c *blockLane) word(r, off int) ptx.B32 {
	p := ptx.CastShared[ptx.U16](c.mine[r]).Offset(off / 2)
	return p.Load().U32().Permute(p.Offset(1).Load().U32(), ptx.U(0x5410)).B32()
}

// half returns the float16 of a row at off, which is even.
func (c *blockLane) half(r, off int) ptx.F32 {
	return ptx.CastShared[ptx.F16](c.row[r]).Offset(off / 2).Load().F32()
}

// blocks returns the blocks of 32 weights to multiply.
func (c *blockLane) blocks() []int {
	if c.only != nil {
		return c.only
	}
	all := make([]int, c.weights/32)
	for i := range all {
		all[i] = i
	}
	return all
}

// bf16s returns four bytes below 128, minus base, as bf16. It subtracts with fma, because sm_80 has
// no subtraction of bf16.
func (c *blockLane) bf16s(bytes ptx.B32, base float32) [2]ptx.BF16x2 {
	var y [2]ptx.BF16x2
	for i, sel := range [2]uint32{0x4140, 0x4342} {
		y[i] = bytes.Permute(ptx.B(magicBytes), ptx.U(sel)).BF16x2().Fma(ptx.BF2(1), ptx.BF2(-128-base))
	}
	return y
}

// rowWeights holds a lane's part of 32 weights of a row: four weights in each of two steps.
type rowWeights [2][2]ptx.BF16x2

// apply multiplies a part of 32 weights and adds the product to the total. scale has a scale for
// each row and step, or only one for each row if both steps share it.
func (c *blockLane) apply(part int, w []rowWeights, scale [][]ptx.F32) {
	if c.before != nil {
		c.before(part)
	}
	k, separate := c.k, len(scale[0]) > 1
	for i, pieces := range c.x {
		x := make([][4]ptx.B32, len(pieces))
		for p := range pieces {
			x[p] = pieces[p].Offset(16 * part).Load4()
		}
		for t := range c.total {
			var s [4]ptx.Var[ptx.F32]
			for step := range 2 {
				if step == 0 || separate {
					s = newSum(k)
				}
				a := [4]ptx.BF16x2{w[2*t][step][0], w[2*t+1][step][0], w[2*t][step][1], w[2*t+1][step][1]}
				for p := range x {
					k.MmaBF16(&s, a, [2]ptx.BF16x2{x[p][2*step].BF16x2(), x[p][2*step+1].BF16x2()})
				}
				if step == 1 || separate {
					for j := range s {
						ptx.MulAddTo(c.total[t][i][j], s[j].Get(), scale[2*t+j/2][step%len(scale[0])])
					}
				}
			}
		}
	}
}

func newSum(k *ptx.Kernel) (s [4]ptx.Var[ptx.F32]) {
	for j := range s {
		s[j] = ptx.NewVar(k, ptx.F(0))
	}
	return s
}

// small multiplies blocks of 32 weights minus base with 16 bytes of nibbles at off: the low nibbles
// are the first 16.
func (c *blockLane) small(off int, base float32, bytes func(c *blockLane, r, at int, high bool) ptx.B32) {
	size := off + 16
	for _, b := range c.blocks() {
		at := b * size
		w, scale := make([]rowWeights, len(c.row)), make([][]ptx.F32, len(c.row))
		for r := range c.row {
			w[r] = rowWeights{c.bf16s(bytes(c, r, at, false), base), c.bf16s(bytes(c, r, at, true), base)}
			scale[r] = []ptx.F32{c.half(r, at)}
		}
		c.apply(b, w, scale)
	}
}

// nibbleBytes returns the low or the high nibbles of four bytes.
func nibbleBytes(w ptx.B32, high bool) ptx.B32 {
	if high {
		w = w.Shr(ptx.U(4))
	}
	return w.And(ptx.B(lowNibbles))
}

// nibbles returns four weights of a Q4_0.
func (c *blockLane) nibbles(r, at int, high bool) ptx.B32 {
	return nibbleBytes(c.word(r, at+2), high)
}

// fives returns four weights of a Q5_0. The fifth bits of all weights are in the 4 bytes before the
// nibbles.
func (c *blockLane) fives(r, at int, high bool) ptx.B32 {
	place := at + 2
	if high {
		place += 2
	}
	bits := ptx.CastShared[ptx.U16](c.row[r]).Offset(place / 2).Load().U32()
	four := bits.Shr(c.quad.Shl(ptx.U(2))).And(ptx.U(15))
	// Move bit i to bit 8i+4; the four shifted copies of the product do not overlap.
	spread := four.Mul(ptx.U(0x02040810)).And(ptx.U(0x10101010)).B32()
	return nibbleBytes(c.word(r, at+6), high).Or(spread)
}

// signedBF16s returns four signed bytes as bf16. A bf16 holds 128 + v exactly only for v below 128: bit 7 of a
// byte, which has the value -128, is subtracted as a second bf16, in which it changes 128 to 256.
func signedBF16s(v ptx.B32) (y [2]ptx.BF16x2) {
	low, top := v.And(ptx.B(0x7f7f7f7f)), v.And(ptx.B(0x80808080))
	for i, sel := range [2]uint32{0x4140, 0x4342} {
		magic := ptx.B(magicBytes)
		y[i] = top.Permute(magic, ptx.U(sel)).BF16x2().Fma(ptx.BF2(-1), low.Permute(magic, ptx.U(sel)).BF16x2())
	}
	return y
}

// q8_0 multiplies blocks of 32 bytes.
func (c *blockLane) q8_0() {
	const size = 34
	for _, b := range c.blocks() {
		at := b * size
		w, scale := make([]rowWeights, len(c.row)), make([][]ptx.F32, len(c.row))
		for r := range c.row {
			for step := range 2 {
				w[r][step] = signedBF16s(c.word(r, at+2+16*step))
			}
			scale[r] = []ptx.F32{c.half(r, at)}
		}
		c.apply(b, w, scale)
	}
}

// byteFloat returns byte i of w plus 2**23.
func byteFloat(w ptx.B32, i int) ptx.F32 {
	return w.Permute(ptx.B(0x4b000000), ptx.U(0x7440|uint32(i))).Float()
}

// kHeader is the part before the quants of a Q4_K or Q5_K: eight groups of 32 weights have a scale
// and a minimum of six bits each.
type kHeader struct {
	d, dmin      ptx.F32
	scales, mins [2]ptx.B32 // one byte for each part: four parts in each word
}

// header returns the header of the block of a row.
func (c *blockLane) header(r int) (y kHeader) {
	const six, top = 0x3f3f3f3f, 0x30303030
	h := ptx.CastShared[ptx.B32](c.row[r]).Load4()
	low, high := h[0].F16x2().Halves()
	y.d, y.dmin = low.F32(), high.F32()
	y.scales = [2]ptx.B32{h[1].And(ptx.B(six)), h[3].And(ptx.B(lowNibbles)).Or(h[1].Shr(ptx.U(2)).And(ptx.B(top)))}
	y.mins = [2]ptx.B32{h[2].And(ptx.B(six)), h[3].Shr(ptx.U(4)).And(ptx.B(lowNibbles)).Or(h[2].Shr(ptx.U(2)).And(ptx.B(top)))}
	return y
}

// headers returns the header of each row.
func (c *blockLane) headers() []kHeader {
	h := make([]kHeader, len(c.row))
	for r := range h {
		h[r] = c.header(r)
	}
	return h
}

// fifths returns the words that hold the fifth bits of a Q5_K, for each row.
func (c *blockLane) fifths() [][2]ptx.B32 {
	y := make([][2]ptx.B32, len(c.row))
	for r := range y {
		y[r] = ptx.CastShared[ptx.B32](c.mine[r]).Offset(4).Load2()
	}
	return y
}

// fifthBits returns the fifth bits of four weights in one part of a Q5_K.
func fifthBits(h ptx.B32, part int) ptx.B32 {
	if part < 4 {
		h = h.Shl(ptx.N(4 - part))
	} else {
		h = h.Shr(ptx.N(part - 4))
	}
	return h.And(ptx.B(0x10101010))
}

// q45K multiplies a block of Q4_K, or of Q5_K with five bits.
func (c *blockLane) q45K(five bool) {
	h := c.headers()
	quants := 16
	var fifth [][2]ptx.B32
	if five {
		quants, fifth = 48, c.fifths()
	}
	offset := make([]ptx.F32, len(c.row))
	for r := range h {
		offset[r] = h[r].d.Mul(ptx.F(-0x1p23))
	}
	q := make([][2]ptx.B32, len(c.row))
	for part := range 8 {
		w, scale := make([]rowWeights, len(c.row)), make([][]ptx.F32, len(c.row))
		for r := range c.row {
			if part%2 == 0 {
				q[r] = ptx.CastShared[ptx.B32](c.mine[r]).Offset((quants + 16*part) / 4).Load2()
			}
			for step := range 2 {
				v := nibbleBytes(q[r][step], part%2 == 1)
				if five {
					v = v.Or(fifthBits(fifth[r][step], part))
				}
				w[r][step] = c.bf16s(v, 0)
			}
			// d·(2**23 + scale) - d·2**23, rounded once.
			scale[r] = []ptx.F32{byteFloat(h[r].scales[part/4], part%4).Fma(h[r].d, offset[r])}
		}
		c.apply(part, w, scale)
	}
	c.subtract(h, c.total)
}

// subtract subtracts the products of the minimums and the sums of 32 activations from a total. Lane
// t holds the sums of groups 2t and 2t+1.
func (c *blockLane) subtract(h []kHeader, from [][][4]ptx.Var[ptx.F32]) {
	late := c.quad.Ge(ptx.U(2))
	sel := ptx.Select(c.quad.And(ptx.U(1)).Ne(ptx.U(0)), ptx.U(0x4342), ptx.U(0x4140))
	w, less := make([]ptx.BF16x2, len(h)), make([]ptx.F32, len(h))
	for r := range h {
		w[r] = ptx.Select(late, h[r].mins[1], h[r].mins[0]).Permute(ptx.B(magicBytes), sel).BF16x2().Fma(ptx.BF2(1), ptx.BF2(-128))
		less[r] = h[r].dmin.Neg()
	}
	for i, pieces := range c.sums {
		x := make([]ptx.BF16x2, len(pieces))
		for p := range pieces {
			x[p] = pieces[p].Load().BF16x2()
		}
		for t := range from {
			s := newSum(c.k)
			for p := range x {
				c.k.MmaBF16(&s, [4]ptx.BF16x2{w[2*t], w[2*t+1], {}, {}}, [2]ptx.BF16x2{x[p], {}})
			}
			for j := range s {
				ptx.MulAddTo(from[t][i][j], s[j].Get(), less[2*t+j/2])
			}
		}
	}
}

// q6K multiplies a block of Q6_K. The block has the low four bits of 256 weights, then their high
// two bits, then a scale for each 16 weights, then the scale of these scales.
func (c *blockLane) q6K() {
	scales, d := make([][4]ptx.B32, len(c.row)), make([]ptx.F32, len(c.row))
	for r := range scales {
		for i, w := range c.sixScales(r) {
			scales[r][i] = w.Xor(ptx.B(0x80808080)) // to unsigned
		}
		d[r] = c.half(r, 208)
	}
	low, high := make([][2][2]ptx.B32, len(c.row)), make([][2]ptx.B32, len(c.row)) // indexed by row and step
	for part := range 8 {
		side, quarter := part/4, part%4
		w, scale := make([]rowWeights, len(c.row)), make([][]ptx.F32, len(c.row))
		for r := range c.row {
			for step := range 2 {
				if quarter == 0 {
					low[r][step] = [2]ptx.B32{c.word(r, 64*side+16*step), c.word(r, 64*side+32+16*step)}
					high[r][step] = c.word(r, 128+32*side+16*step)
				}
				h := high[r][step]
				if quarter < 2 {
					h = h.Shl(ptx.N(4 - 2*quarter))
				} else {
					h = h.Shr(ptx.N(2*quarter - 4))
				}
				v := nibbleBytes(low[r][step][quarter%2], quarter >= 2).Or(h.And(ptx.B(0x30303030)))
				w[r][step] = c.bf16s(v, 32)
				n := 2*part + step
				scale[r] = append(scale[r], byteFloat(scales[r][n/4], n%4).Sub(ptx.F(0x1p23+128)).Mul(d[r]))
			}
		}
		c.apply(part, w, scale)
	}
}

// sixScales returns the sixteen scales of a Q6_K, which are signed bytes.
func (c *blockLane) sixScales(r int) (y [4]ptx.B32) {
	p := ptx.CastShared[ptx.U16](c.row[r]).Offset(192 / 2)
	for i := range y {
		y[i] = p.Offset(2*i).Load().U32().Permute(p.Offset(2*i+1).Load().U32(), ptx.U(0x5410)).B32()
	}
	return y
}
