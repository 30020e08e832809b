package ptxkernels

import (
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// The tensor cores for signed bytes can also multiply one row of activations, or a few rows; they take the integers of blocks
// with little conversion. 256 activations become fixed-point numbers of 64 bits with a common scale, and each number is eight
// signed digits in base 256, one for each column of an mma; or six digits of 48 bits if there is not enough shared memory. Sums
// of digits are exact integers. The result equals a float32 product if the fixed-point numbers equal the activations. If they
// do not, because the magnitudes of 256 activations are too different or not finite, the kernel uses bf16.

const (
	digits     = 8
	digitGroup = 256
)

// digitDecoder describes how a kernel multiplies the weights of a format by digits.
type digitDecoder struct {
	split bool // as in blockDecoder
	build func(c *digitLane)
	// misaligned, if not nil, reports whether the weights of a part of a group begin 2 bytes after
	// a multiple of 4: see misalignedLane.
	misaligned func(group, part ptx.U32) ptx.Pred
}

// digitCode returns the digitDecoder of the format.
func (s *quantFewSpec) digitCode() *digitDecoder {
	code := digitDecoders[s.Blocks.Block()]
	if s.Blocks == op.Q6_K && !s.Ring && (!s.Full || s.Groups%2 != 0) {
		return &digitDecoder{split: code.split, build: code.build}
	}
	return code
}

// evenParts is the digitDecoder.misaligned of formats with blocks of 32 weights.
func evenParts(_, part ptx.U32) ptx.Pred { return part.And(ptx.U(1)).Eq(ptx.U(0)) }

// misalignedLane loads a lane's four of 16 bytes with the fewest loads. If the 16 bytes begin 2
// bytes after a multiple of 4, lanes 0 to 2 of each four take the three aligned words inside, and
// lane 3 takes the first two and the last two bytes. The activations are in the same order.
type misalignedLane struct {
	at  []ptx.Shared[ptx.U8] // of each row: 2 bytes after the lane's first word of the 16 bytes
	sel ptx.U32
	off int // the offset in the row that at includes
	had map[[2]int]ptx.B32
	// far is at, plus 16 bytes in lane 3. The other lanes do not need the bytes after a block, and
	// must not read them if the block is the last of a row, at end or later. It is nil if there are
	// always bytes after a block.
	far []ptx.Shared[ptx.U8]
	end int
}

// lateWords is for 16 bytes that begin 2 bytes after a multiple of 4. It returns the offset of the
// lane's word from the word that holds the first byte, and the permutation that selects the lane's
// four bytes from this word and the word 16 bytes after it.
func lateWords(quad ptx.U32) (late, sel ptx.U32) {
	last := quad.Eq(ptx.U(3))
	return ptx.Select(last, ptx.U(0), quad.MulAdd(ptx.U(4), ptx.U(4))), ptx.Select(last, ptx.U(0x5432), ptx.U(0x3210))
}

// misalignedPlaces returns the positions in a group of the two pairs of activations that belong to
// four weights of a lane.
func misalignedPlaces(four ptx.U32, late ptx.Pred) [2]ptx.U32 {
	lane := four.And(ptx.U(3))
	first := four.Shr(ptx.U(2)).Shl(ptx.U(4))
	last := lane.Eq(ptx.U(3))
	at := first.Add(lane.Shl(ptx.U(2)))
	return [2]ptx.U32{
		ptx.Select(late, ptx.Select(last, first, at.Add(ptx.U(2))), at),
		ptx.Select(late, ptx.Select(last, first.Add(ptx.U(14)), at.Add(ptx.U(4))), at.Add(ptx.U(2))),
	}
}

// late returns the lane's four of the 16 bytes at off, which begin 2 bytes after a multiple of 4.
func (c *digitLane) late(r, off int) ptx.B32 {
	load := func(off int) ptx.B32 {
		w, ok := c.misaligned.had[[2]int{r, off}]
		if !ok {
			w = ptx.CastShared[ptx.B32](c.misaligned.at[r].Offset(off - 2)).Load()
			c.misaligned.had[[2]int{r, off}] = w
		}
		return w
	}
	var next ptx.B32
	if c.misaligned.far != nil && off+16 >= c.misaligned.end {
		next = ptx.CastShared[ptx.B32](c.misaligned.far[r].Offset(off - 2)).Load()
	} else {
		next = load(off + 16)
	}
	return load(off).U32().Permute(next.U32(), c.misaligned.sel).B32()
}

// sixteen returns the lane's four of the 16 bytes at off.
func (c *digitLane) sixteen(r, off int) ptx.B32 {
	switch {
	case c.misaligned == nil:
		return c.word(r, off)
	case (c.misaligned.off+off)%4 != 0:
		return c.late(r, off)
	}
	return ptx.CastShared[ptx.B32](c.mine[r].Offset(off)).Load()
}

var digitDecoders = map[block.Format]*digitDecoder{
	block.Q4_0: {split: true, build: func(c *digitLane) { c.small(18, 1.0/16, (*digitLane).nibbles) }, misaligned: evenParts},
	block.Q5_0: {split: true, build: func(c *digitLane) { c.small(22, 1.0/8, (*digitLane).fives) }},
	block.Q8_0: {split: true, build: func(c *digitLane) { c.small(34, 1, (*digitLane).eights) }, misaligned: evenParts},
	block.Q4_K: {build: func(c *digitLane) { c.q45K(false) }},
	block.Q5_K: {build: func(c *digitLane) { c.q45K(true) }},
	block.Q6_K: {split: true, build: (*digitLane).q6K, misaligned: func(group, _ ptx.U32) ptx.Pred { return group.And(ptx.U(1)).Ne(ptx.U(0)) }},
}

// topBits are the top bits of four bytes.
const topBits = 0x80808080

// digitLane is a blockLane for the multiplication by digits.
type digitLane struct {
	*blockLane
	units []ptx.F32               // for each row of activations, the value of 1 in its first column
	less  [][][4]ptx.Var[ptx.F32] // products of the minima
	constants
	misaligned *misalignedLane // nil if digitDecoder.misaligned is
}

// constants has numbers in registers whose contents are unknown to the assembler, which otherwise
// replaces instructions that use them by slower ones.
type constants struct {
	// flip is topBits: an instruction with three operands has room for one constant, and the
	// assembler would split an instruction with two constants into two.
	flip ptx.B32
	// bit23 is 1<<23. The assembler multiplies by a power of 2 in the unit that permutes bytes, which
	// limits the speed of these kernels. A multiplication by a register runs beside it.
	bit23 ptx.S32
	// factor is 2*levelDecoder.factors: the mask of levelLane.odd, and the number 2 for Q1_0.
	factor ptx.B32
	levels ptx.B32 // of a format with a grid: the first four levels; otherwise the bytes 64, the positive levels of Q1_0
	entry  ptx.U32 // of a format with a grid: the size of the entry of a code
}

// constantBytes is the size of the constants in shared memory.
const constantBytes = 4 * 5

// constantsOf returns the constants of a format whose tables have the given numbers of copies.
func constantsOf(f block.Format, copies tableCopies) [constantBytes / 4]uint32 {
	v := [...]uint32{topBits, 1 << 23, 0, 0x40404040, uint32(4 * copies.grid)}
	if l := levelDecoders[f]; l != nil {
		v[2] = 2 * l.factors
		if l.grid != nil {
			levels, _ := l.gridCodes()
			v[3] = gridSelected(levels)[0]
		}
	}
	return v
}

// literal returns the constants as numbers that the assembler knows.
func literal(f block.Format, copies tableCopies) constants {
	v := constantsOf(f, copies)
	return constants{ptx.B(v[0]), ptx.S(int32(v[1])), ptx.B(v[2]), ptx.B(v[3]), ptx.U(v[4])}
}

// storeConstants stores the constants in shared memory. One thread calls it.
func (c *quantFewCode) storeConstants() {
	for i, v := range constantsOf(c.Blocks.Block(), c.tableCopies()) {
		c.inexact.Offset(1 + i).Store(ptx.U(v))
	}
}

func (c *quantFewCode) loadConstants() constants {
	at := func(i int) ptx.B32 { return c.inexact.Offset(1 + i).Load().B32() }
	return constants{at(0), at(1).S32(), at(2), at(3), at(4).U32()}
}

// digitPlace returns the offset in a column of the four activations from position 4*i of a group
// on. The activations of a lane for two parts of 32 are adjacent.
func digitPlace(i ptx.U32, split bool) ptx.U32 {
	part, four := i.Shr(ptx.U(3)), i.And(ptx.U(7))
	lane, step := four.Shr(ptx.U(1)), four.And(ptx.U(1))
	if split {
		lane, step = four.And(ptx.U(3)), four.Shr(ptx.U(2))
	}
	return part.Shr(ptx.U(1)).Shl(ptx.U(6)).Add(lane.Shl(ptx.U(4))).Add(part.And(ptx.U(1)).Shl(ptx.U(3))).Add(step.Shl(ptx.U(2)))
}

// splitDigits returns the digits of four activations, one register for each column, and whether
// they are exact. up is a power of 2 that scales all activations of the group below 2**30.
func splitDigits(x [4]ptx.F32, up ptx.F32, n int) (columns []ptx.B32, exact ptx.Pred) {
	var words [2][4]ptx.B32
	for i, v := range x {
		v = v.Mul(up)
		whole := v.Floor()
		rest := v.Sub(whole).Mul(ptx.F(float32(uint64(1) << (8 * (n - 4)))))
		low := rest.TruncU32()
		is := low.F32().Eq(rest)
		if i == 0 {
			exact = is
		} else {
			exact = exact.And(is)
		}
		// To convert bytes to signed digits, add 128 to each byte with carries, and then subtract
		// it without borrows.
		const bias = 0x80808080
		unused := 8 * (digits - n)
		sum := low.Add(ptx.U(bias >> unused))
		carry := sum.Shr(ptx.N(32 - unused))
		if unused == 0 {
			carry = ptx.Select(sum.Lt(low), ptx.U(1), ptx.U(0))
		}
		words[1][i] = sum.Xor(ptx.U(bias >> unused)).Shl(ptx.N(unused)).B32()
		words[0][i] = whole.TruncS32().U32().Add(ptx.U(bias)).Add(carry).Xor(ptx.U(bias)).B32()
	}
	columns = make([]ptx.B32, digits)
	for half, w := range words {
		for pair := range 2 { // bytes 3 and 2, then 1 and 0
			sel := ptx.U([2]uint32{0x6273, 0x4051}[pair])
			a, b := w[0].Permute(w[1], sel), w[2].Permute(w[3], sel)
			columns[4*half+2*pair] = a.Permute(b, ptx.U(0x5410))
			columns[4*half+2*pair+1] = a.Permute(b, ptx.U(0x7632))
		}
	}
	return columns[:n], exact
}

// parts returns a function that returns the digits of a part of 32 activations in tile m. It loads
// two parts at a time when one of them is requested; with a single tile it loads the first n parts
// at once.
func (c *digitLane) parts(n int) func(m, part int) [2]ptx.B32 {
	y := make([][8][2]ptx.B32, len(c.x))
	load := func(m, i int) {
		v := c.x[m][0].Offset(16 * i).Load4()
		y[m][2*i], y[m][2*i+1] = [2]ptx.B32{v[0], v[1]}, [2]ptx.B32{v[2], v[3]}
	}
	had := make([][4]bool, len(c.x))
	if len(c.x) == 1 { // load all digits at once
		for i := range (n + 1) / 2 {
			load(0, i)
			had[0][i] = true
		}
	}
	return func(m, part int) [2]ptx.B32 {
		if !had[m][part/2] {
			load(m, part/2)
			had[m][part/2] = true
		}
		return y[m][part]
	}
}

// integers is an accumulator of integer products.
type integers [4]ptx.Var[ptx.S32]

func (c *digitLane) newIntegers() *integers {
	s := new(integers)
	for i := range s {
		s[i] = ptx.NewVar(c.k, ptx.S(0))
	}
	return s
}

// multiply returns the product of weights and digits. w is indexed by row and step.
func (c *digitLane) multiply(w [2][2]ptx.B32, x [2]ptx.B32) *integers {
	s := c.newIntegers()
	c.k.MmaS8((*[4]ptx.Var[ptx.S32])(s), [4]ptx.B32{w[0][0], w[1][0], w[0][1], w[1][1]}, x)
	return s
}

// addTo adds s times an integer for each row.
func (s *integers) addTo(to *integers, scale [2]ptx.S32) {
	for i := range s {
		to[i].Set(s[i].Get().MulAdd(scale[i/2], to[i].Get()))
	}
}

// scaleTo adds s times a number for each row.
func (s *integers) scaleTo(to *[4]ptx.Var[ptx.F32], scale [2]ptx.F32) {
	for i := range s {
		ptx.MulAddTo(to[i], s[i].Get().F32(), scale[i/2])
	}
}

// small multiplies blocks of 32 weights. bytes returns four weights divided by factor.
func (c *digitLane) small(size int, factor float32, bytes func(c *digitLane, r, at, step int) ptx.B32) {
	blocks := c.blocks()
	x := c.parts(blocks[len(blocks)-1] + 1)
	groups := make([][2]ptx.Var[ptx.F32], len(c.units))
	for m := range groups {
		groups[m] = [2]ptx.Var[ptx.F32]{ptx.NewVar(c.k, ptx.F(0)), ptx.NewVar(c.k, ptx.F(0))}
	}
	for _, b := range blocks {
		at := b * size
		var w [2][2]ptx.B32
		for r := range 2 {
			w[r] = [2]ptx.B32{bytes(c, r, at, 0), bytes(c, r, at, 1)}
		}
		var scale [2]ptx.F32
		for m, group := range groups {
			s := c.multiply(w, x(m, b))
			for r := range 2 {
				// The lane's two columns are adjacent digits, and their sum is less than 2**28.
				two := s[2*r].Get().MulAdd(ptx.S(256), s[2*r+1].Get())
				if m == 0 {
					scale[r] = c.half(r, at)
				}
				ptx.MulAddTo(group[r], two.F32(), scale[r])
			}
		}
	}
	for m, group := range groups {
		unit := c.units[m].Mul(ptx.F(factor / 256))
		for r := range 2 {
			ptx.MulAddTo(c.total[0][m][2*r], group[r].Get(), unit)
		}
	}
}

// nibbles returns four weights of a Q4_0, times 16: the nibbles are in the high bits of the bytes,
// with the top bit flipped.
func (c *digitLane) nibbles(r, at, step int) ptx.B32 {
	w := c.sixteen(r, at+2)
	if step == 0 {
		w = w.Shl(ptx.U(4))
	}
	return w.And(ptx.B(0xf0f0f0f0)).Xor(c.flip)
}

// fives returns four weights of a Q5_0, times 8, in the same way.
func (c *digitLane) fives(r, at, step int) ptx.B32 {
	bits := ptx.CastShared[ptx.U16](c.row[r]).Offset((at + 2 + 2*step) / 2).Load().U32()
	four := bits.Shr(c.quad.Shl(ptx.U(2))).And(ptx.U(15))
	fifth := four.Mul(ptx.U(0x10204080)).B32() // move bit i to bit 8i+7
	w := c.word(r, at+6)
	if step == 0 {
		w = w.Shl(ptx.U(3))
	} else {
		w = w.Shr(ptx.U(1))
	}
	return w.And(ptx.B(0x78787878)).Xor(c.flip).Xor(fifth.And(ptx.B(topBits)))
}

// eights returns four weights of a Q8_0.
func (c *digitLane) eights(r, at, step int) ptx.B32 { return c.sixteen(r, at+2+16*step) }

// q45K is [blockLane.q45K] with digits. High nibbles are not shifted: they count 16 times as much,
// and have a separate sum.
func (c *digitLane) q45K(five bool) {
	h := c.headers()
	quants := 16
	var fifth [][2]ptx.B32
	if five {
		quants, fifth = 48, c.fifths()
	}
	x := c.parts(8)
	all := make([][2]*integers, len(c.units))
	for m := range all {
		sums := [2]*integers{c.newIntegers(), nil}
		if sums[1] = sums[0]; !five {
			sums[1] = c.newIntegers()
		}
		all[m] = sums
	}
	for pair := range 4 {
		var q [2][2]ptx.B32
		for r := range 2 {
			q[r] = ptx.CastShared[ptx.B32](c.mine[r]).Offset((quants + 32*pair) / 4).Load2()
		}
		for half := range 2 {
			part := 2*pair + half
			var w [4]ptx.B32
			var scale [2]ptx.S32
			for r := range 2 {
				for step := range 2 {
					v := q[r][step].And(ptx.B(lowNibbles << (4 * half)))
					if five && half == 1 {
						v = q[r][step].Shr(ptx.U(4)).And(ptx.B(lowNibbles))
					}
					if five {
						v = v.Or(fifthBits(fifth[r][step], part))
					}
					w[r+2*step] = v
				}
				scale[r] = h[r].scales[part/4].Permute(ptx.B(0), ptx.U(0x4440|uint32(part%4))).S32()
			}
			for m, sums := range all {
				p := c.newIntegers()
				c.k.MmaU8S8((*[4]ptx.Var[ptx.S32])(p), w, x(m, part))
				p.addTo(sums[half], scale)
			}
		}
	}
	for m, sums := range all {
		for i := range c.total[0][m] {
			v := sums[0][i].Get().F32()
			if !five {
				v = sums[1][i].Get().F32().Fma(ptx.F(1.0/16), v)
			}
			ptx.MulAddTo(c.total[0][m][i], v, h[i/2].d.Mul(c.units[m]))
		}
	}
	c.subtract(h, c.less)
}

// q6K is [blockLane.q6K] with digits. It multiplies the weights times 4: they are in the high bits
// of bytes, with the top bit flipped.
func (c *digitLane) q6K() {
	x := c.parts(8)
	sums := make([]*integers, len(c.units))
	for m := range sums {
		sums[m] = c.newIntegers()
	}
	for side := range 2 {
		for step := range 2 {
			var low [2][2]ptx.B32
			var high [2]ptx.B32
			for r := range 2 {
				low[r] = [2]ptx.B32{c.sixteen(r, 64*side+16*step), c.sixteen(r, 64*side+32+16*step)}
				high[r] = c.sixteen(r, 128+32*side+16*step)
			}
			for quarter := range 4 {
				part := 4*side + quarter
				n := 2*part + step
				var w [2]ptx.B32
				var scale [2]ptx.S32
				for r := range 2 {
					q, h := low[r][quarter%2], high[r]
					if quarter < 2 {
						q = q.Shl(ptx.U(2))
					} else {
						q = q.Shr(ptx.U(2))
					}
					h = h.Shl(ptx.N(6 - 2*quarter))
					w[r] = q.And(ptx.B(0x3c3c3c3c)).Xor(c.flip).Xor(h.And(ptx.B(0xc0c0c0c0)))
					scale[r] = ptx.CastShared[ptx.S8](c.row[r]).Offset(192 + n).Load().S32()
				}
				for m, sum := range sums {
					p := c.newIntegers()
					c.k.MmaS8K16((*[4]ptx.Var[ptx.S32])(p), w, [1]ptx.B32{x(m, part)[step]})
					p.addTo(sum, scale)
				}
			}
		}
	}
	d := [2]ptx.F32{c.half(0, 208), c.half(1, 208)}
	for m, sum := range sums {
		unit := c.units[m].Mul(ptx.F(0.25))
		sum.scaleTo(&c.total[0][m], [2]ptx.F32{d[0].Mul(unit), d[1].Mul(unit)})
	}
}
