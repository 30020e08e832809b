package ptxkernels

import (
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// levelDecoder decodes a group of 256 weights to levels, which are signed bytes, and to the factors
// of these levels. The bf16 and the digit kernels of a format are derived from its levelDecoder.
type levelDecoder struct {
	split bool // as in blockDecoder
	mins  bool // as in blockDecoder: levels.mins is set
	// order, if not nil, returns the positions of a lane's activations in a step: slot is 8·part +
	// 4·step + lane. If order is nil, a lane has the four adjacent activations that split selects.
	order func(slot ptx.U32) [4]ptx.U32
	table []int8      // 16 levels, which share writes to shared memory
	grid  *block.Grid // the grid, which share writes to shared memory
	// copies is the number of copies of the grid, in different banks for different lanes.
	copies  int
	signs   signKind
	factors uint32 // the largest n of the small factors 2n+1 of a grid; 1 for Q1_0, see constants.factor
	trits   bool   // levels are digits of bytes in base 3
	shifted bool   // the levels of the grid are -1, 0 and 1, shifted by 1/8
	// If unsigned, levels are bytes below 128, and the weight is the level minus offset. Otherwise
	// levels are from -64 to 63 unless wide.
	unsigned, wide bool
	offset         int     // with digits, mins subtracts it if set
	unit           float32 // the value of 1 in a level times a small factor
	open           func(c *levelLane) *levels
	// own, if not nil, decodes for kernels that multiply by digits: see ownLevels.
	own    func(c *levelLane) *ownLevels
	format block.Format // set by register
}

// signKind is how a format with a grid stores the signs of eight weights.
type signKind uint8

const (
	noSigns    signKind = iota
	sevenSigns          // seven bits; the number of negative weights is even
	eightSigns
)

// levels has the functions that decode a lane's weights of a group. Their arguments are a row r of
// the tile, a part of 32 weights, and one of two steps in the part.
type levels struct {
	four func(r, part, step int) ptx.B32 // levels
	// The factor of a level is scale or, if all levels of the group share a factor, whole. If sub
	// is not nil, the small integer that it returns multiplies the factor.
	scale func(r, part, step int) ptx.F32
	whole func(r int) ptx.F32
	sub   func(r, part, step int) ptx.S32
	// plus, if not nil, returns four bytes to add to the levels, with digits only.
	plus func(r, part, step int) ptx.B32
	// fours, with digits and if not 0: levels are bytes from 0 to 255, and the levels of these parts are multiplied by 4.
	fours uint8
	steps bool // the steps of a part have different factors
	lanes bool // without digits only: in a part, lanes 0 and 1 have the factors of step 0, lanes 2 and 3 those of step 1
	span  int  // consecutive parts with the same scale; 0 means 1
	// less, if not nil, returns four bytes. Their products with the activations, times lessWhole,
	// are subtracted.
	less      func(r, part, step int) ptx.B32
	lessWhole func(r int) ptx.F32
	// mins, if not nil, returns the summands of the weights of parts 2t and 2t+1, in lane t. A
	// summand is the sum of two bf16.
	mins func(r int) [2]ptx.BF16x2
}

// levelLane decodes a lane's part of a group.
type levelLane struct {
	*blockLane
	code   *levelDecoder
	bytes  int  // size of a group
	digits bool // the kernel multiplies levels by digits
	constants
	had map[levelWord]ptx.B32
}

// levelWord identifies a loaded word of a row.
type levelWord struct {
	mine   bool
	r, off int
}

// register registers the blockDecoder and the digitDecoder of f.
func (f *levelDecoder) register(b block.Format) {
	f.format = b
	bytes := b.Bytes() * digitGroup / b.Elements()
	blockDecoders[b] = &blockDecoder{split: f.split, mins: f.mins, levels: f, build: func(c *blockLane) { c.levels(f, bytes) }}
	digitDecoders[b] = &digitDecoder{split: f.split, build: func(c *digitLane) { c.levels(f, bytes) }}
	if f.own != nil {
		digitDecoders[b] = &digitDecoder{split: true, build: func(c *digitLane) { c.ownLevels(f, bytes) }}
	}
}

func init() {
	for b, f := range levelDecoders {
		f.register(b)
	}
}

// ordered reports whether f has its own order of activations.
func (f *levelDecoder) ordered() bool { return f != nil && f.order != nil }

// activations loads the four activations of a slot, of the group that begins at element group.
func (f *levelDecoder) activations(t op.DType, a ptx.Global[ptx.U32], group, slot ptx.U32) (y []ptx.U32) {
	for _, i := range f.order(slot.And(ptx.U(63))) {
		y = append(y, loadElements(t, a, group.Add(i), 1)...)
	}
	return y
}

// strided is the order of activations for formats with n codes in each byte. A lane loads a word of
// 32 bits, which holds the codes of 4·n adjacent weights. A step uses one code of each byte; these
// four weights are n elements apart.
func strided(n uint32) func(slot ptx.U32) [4]ptx.U32 {
	return func(slot ptx.U32) (y [4]ptx.U32) {
		first := slot.Div(ptx.U(4 * n)).Mul(ptx.U(16 * n)).Add(slot.And(ptx.U(3)).Mul(ptx.U(4 * n))).Add(slot.Shr(ptx.U(2)).Rem(ptx.U(n)))
		for j := range y {
			y[j] = first.Add(ptx.N(j * int(n)))
		}
		return y
	}
}

// load returns four bytes of a row, or of the lane's part.
func (c *levelLane) load(mine bool, r, off int) ptx.B32 {
	at := levelWord{mine, r, off}
	if w, ok := c.had[at]; ok {
		return w
	}
	from := c.row[r]
	if mine {
		from = c.mine[r]
	}
	var w ptx.B32
	switch {
	case c.bytes%4 != 0 && c.aligned(off):
		w = ptx.CastShared[ptx.B32](from.Offset(off)).Load()
	case c.bytes%4 != 0 && c.begin != anywhere && !mine && off%2 == 0 && off+4 < c.bytes: // adjacent words share the loads
		w = c.load(mine, r, off-2).Permute(c.load(mine, r, off+2), ptx.U(0x5432))
	case c.bytes%4 != 0:
		p := ptx.CastShared[ptx.U16](from).Offset(off / 2)
		w = p.Load().U32().Permute(p.Offset(1).Load().U32(), ptx.U(0x5410)).B32()
	case off%4 == 0:
		w = ptx.CastShared[ptx.B32](from).Offset(off / 4).Load()
	default:
		w = c.load(mine, r, off&^3).Permute(c.load(mine, r, off&^3+4), ptx.N(0x3210+0x1111*(off&3)))
	}
	c.had[at] = w
	return w
}

// aligned reports whether bytes of a row at off are known to begin at a multiple of 4.
func (c *levelLane) aligned(off int) bool { return c.begin != anywhere && (2*int(c.begin)+off)%4 == 0 }

// lane16 returns two bytes of the lane's part, from off on.
func (c *levelLane) lane16(r, off int) ptx.U32 {
	if off%2 != 0 { // the result is in the low half of the word
		w := c.lane(r, off&^3)
		if off&3 == 1 {
			return w.Shr(ptx.U(8)).U32()
		}
		return w.Permute(c.lane(r, off&^3+4), ptx.U(0x0043)).U32()
	}
	at := levelWord{true, r, -1 - off}
	w, ok := c.had[at]
	if !ok {
		w = ptx.CastShared[ptx.U16](c.mine[r]).Offset(off / 2).Load().U32().B32()
		c.had[at] = w
	}
	return w.U32()
}

// lane returns four bytes of the lane's part from off on; fixed returns four bytes of the row at off.
func (c *levelLane) lane(r, off int) ptx.B32  { return c.load(true, r, off) }
func (c *levelLane) fixed(r, off int) ptx.B32 { return c.load(false, r, off) }

// byteAt returns byte i of a word.
func byteAt(w ptx.B32, i int) ptx.U32 { return w.Permute(ptx.B(0), ptx.N(0x4440+i)).U32() }

// signedByte returns byte i of a word, sign-extended.
func signedByte(w ptx.B32, i int) ptx.S32 { return w.Permute(ptx.B(0), ptx.N(0x8880+0x1111*i)).S32() }

// bytesOf returns a word of four copies of byte i.
func bytesOf(w ptx.B32, i int) ptx.B32 { return w.Permute(ptx.B(0), ptx.N(0x1111*i)) }

// newLevels returns the lane's view of a group.
func (c *blockLane) newLevels(f *levelDecoder, bytes int, known *constants) *levels {
	return f.open(c.newLevelLane(f, bytes, known))
}

// newLevelLane returns a levelLane. known is nil if the kernel does not multiply by digits.
func (c *blockLane) newLevelLane(f *levelDecoder, bytes int, known *constants) *levelLane {
	l := &levelLane{blockLane: c, code: f, bytes: bytes, digits: known != nil, had: map[levelWord]ptx.B32{}}
	if known == nil {
		v := literal(f.format, c.table.copies)
		known = &v
	}
	l.constants = *known
	return l
}

// levelBF16s returns levels as bf16.
func (c *blockLane) levelBF16s(f *levelDecoder, v ptx.B32) [2]ptx.BF16x2 {
	switch {
	case f.unsigned:
		return c.bf16s(v, float32(f.offset))
	case f.wide:
		return signedBF16s(v)
	}
	return c.bf16s(v.Xor(ptx.B(0x40404040)).And(ptx.B(0x7f7f7f7f)), 64)
}

// levels multiplies a group with bf16.
func (c *blockLane) levels(f *levelDecoder, bytes int) {
	l := c.newLevels(f, bytes, nil)
	whole, less := make([]ptx.F32, len(c.row)), make([][]ptx.F32, len(c.row))
	for r := range c.row {
		if l.whole != nil {
			whole[r] = l.whole(r)
		}
		if l.less != nil {
			less[r] = []ptx.F32{l.lessWhole(r).Neg()}
		}
	}
	before := c.before
	for part := range 8 {
		if l.lanes {
			c.lanes(f, l, whole, part)
			continue
		}
		w, scale, other := make([]rowWeights, len(c.row)), make([][]ptx.F32, len(c.row)), make([]rowWeights, len(c.row))
		for r := range c.row {
			for step := range 2 {
				w[r][step] = c.levelBF16s(f, l.four(r, part, step))
				if l.less != nil {
					other[r][step] = c.bf16s(l.less(r, part, step), 0)
				}
				if step == 0 || l.steps {
					scale[r] = append(scale[r], l.factor(f, whole[r], r, part, step))
				}
			}
		}
		c.apply(part, w, scale)
		if l.less != nil {
			c.before = nil
			c.apply(part, other, less)
			c.before = before
		}
	}
	if l.mins != nil {
		c.add(l, c.total)
	}
}

// lanes multiplies a part whose lanes have different factors. It multiplies once for each factor,
// with the levels of the other lanes set to 0.
func (c *blockLane) lanes(f *levelDecoder, l *levels, whole []ptx.F32, part int) {
	before, late := c.before, c.quad.Ge(ptx.U(2))
	w, scale := [2][]rowWeights{}, [2][][]ptx.F32{}
	for r := range c.row {
		v := [2][2]ptx.BF16x2{c.levelBF16s(f, l.four(r, part, 0)), c.levelBF16s(f, l.four(r, part, 1))}
		for i := range w {
			var mine rowWeights
			for step := range v {
				for n, x := range v[step] {
					mine[step][n] = ptx.Select(late, [2]ptx.BF16x2{ptx.BF2(0), x}[i], [2]ptx.BF16x2{x, ptx.BF2(0)}[i])
				}
			}
			w[i] = append(w[i], mine)
			scale[i] = append(scale[i], []ptx.F32{l.factor(f, whole[r], r, part, i)})
		}
	}
	c.apply(part, w[0], scale[0])
	c.before = nil
	c.apply(part, w[1], scale[1])
	c.before = before
}

// factor returns the factor of the levels of a step. whole is the factor of the whole group.
func (l *levels) factor(f *levelDecoder, whole ptx.F32, r, part, step int) ptx.F32 {
	switch {
	case l.whole == nil && f.unit == 1:
		return l.scale(r, part, step)
	case l.whole == nil:
		return l.scale(r, part, step).Mul(ptx.F(f.unit))
	case l.sub == nil:
		return whole.Mul(ptx.F(f.unit))
	}
	return l.sub(r, part, step).F32().Mul(ptx.F(f.unit)).Mul(whole)
}

// add adds the summands of weights to a total: see subtract.
func (c *blockLane) add(l *levels, to [][][4]ptx.Var[ptx.F32]) {
	w := make([][2]ptx.BF16x2, len(c.row))
	for r := range w {
		w[r] = l.mins(r)
	}
	for i, pieces := range c.sums {
		x := make([]ptx.BF16x2, len(pieces))
		for p := range pieces {
			x[p] = pieces[p].Load().BF16x2()
		}
		for t := range to {
			s := to[t][i]
			for p := range x {
				c.k.MmaBF16(&s, [4]ptx.BF16x2{w[2*t][0], w[2*t+1][0], w[2*t][1], w[2*t+1][1]}, [2]ptx.BF16x2{x[p], x[p]})
			}
		}
	}
}

// halfPair splits each of two float16 into a sum of two bf16; the high one is rounded toward 0.
func halfPair(a, b ptx.F32) [2]ptx.BF16x2 {
	x, y := pieceBits(a, 2), pieceBits(b, 2)
	return [2]ptx.BF16x2{x[0].Permute(y[0], ptx.U(0x7632)).BF16x2(), x[1].Permute(y[1], ptx.U(0x7632)).BF16x2()}
}

// levels multiplies a group with digits.
func (c *digitLane) levels(f *levelDecoder, bytes int) {
	l := c.newLevels(f, bytes, &c.constants)
	if l.whole == nil {
		c.scaledLevels(f, l)
	} else {
		c.wholeLevels(f, l)
	}
	if l.mins != nil {
		c.add(l, c.less)
	}
}

// weights returns the levels of a part.
func (c *digitLane) weights(four func(r, part, step int) ptx.B32, part int) (w [2][2]ptx.B32) {
	for r := range w {
		w[r] = [2]ptx.B32{four(r, part, 0), four(r, part, 1)}
	}
	return w
}

// multiplyTo adds the products of levels to s.
func (c *digitLane) multiplyTo(s *integers, w [2][2]ptx.B32, x [2]ptx.B32) {
	c.k.MmaS8((*[4]ptx.Var[ptx.S32])(s), [4]ptx.B32{w[0][0], w[1][0], w[0][1], w[1][1]}, x)
}

// multiplyLevels returns the sums of products of a part: one sum, or one for each step.
func (c *digitLane) multiplyLevels(l *levels, w [2][2]ptx.B32, x [2]ptx.B32, part int) (y []*integers) {
	factors := [][2][2]ptx.B32{w}
	if l.plus != nil {
		factors = append(factors, c.weights(l.plus, part))
	}
	if !l.steps {
		s := c.newIntegers()
		for _, v := range factors {
			c.multiplyTo(s, v, x)
		}
		return []*integers{s}
	}
	for step := range 2 {
		s := c.newIntegers()
		for _, v := range factors {
			c.k.MmaS8K16((*[4]ptx.Var[ptx.S32])(s), [2]ptx.B32{v[0][step], v[1][step]}, [1]ptx.B32{x[step]})
		}
		y = append(y, s)
	}
	return y
}

// scaledLevels multiplies levels that have a float32 factor for each part or step.
func (c *digitLane) scaledLevels(f *levelDecoder, l *levels) {
	x := c.parts(8)
	groups := make([][2]ptx.Var[ptx.F32], len(c.units))
	for m := range groups {
		groups[m] = [2]ptx.Var[ptx.F32]{ptx.NewVar(c.k, ptx.F(0)), ptx.NewVar(c.k, ptx.F(0))}
	}
	span := max(l.span, 1)
	sums := make([][]*integers, len(c.units)) // for the consecutive parts with the same scale
	for part := range 8 {
		w := c.weights(l.four, part)
		var scale [2][2]ptx.F32
		for m, group := range groups {
			if part%span == 0 {
				sums[m] = c.multiplyLevels(l, w, x(m, part), part)
			} else {
				c.multiplyTo(sums[m][0], w, x(m, part))
			}
			if (part+1)%span != 0 {
				continue
			}
			for step, s := range sums[m] {
				for r := range 2 {
					if m == 0 {
						scale[step][r] = l.scale(r, part, step)
					}
					two := s[2*r].Get().MulAdd(ptx.S(256), s[2*r+1].Get())
					ptx.MulAddTo(group[r], two.F32(), scale[step][r])
				}
			}
		}
	}
	for m, group := range groups {
		unit := c.units[m].Mul(ptx.F(f.unit / 256))
		for r := range 2 {
			ptx.MulAddTo(c.total[0][m][2*r], group[r].Get(), unit)
		}
	}
}

// wholeLevels multiplies levels whose factors are integers times one float32 of the group.
func (c *digitLane) wholeLevels(f *levelDecoder, l *levels) {
	x := c.parts(8)
	sums, less, fours := make([]*integers, len(c.units)), make([]*integers, len(c.units)), make([]*integers, len(c.units))
	for m := range sums {
		sums[m], less[m], fours[m] = c.newIntegers(), c.newIntegers(), c.newIntegers()
	}
	for part := range 8 {
		w := c.weights(l.four, part)
		var other [2][2]ptx.B32
		if l.less != nil {
			other = c.weights(l.less, part)
		}
		var sub [2][2]ptx.S32
		for m, sum := range sums {
			if l.less != nil {
				c.multiplyTo(less[m], other, x(m, part))
			}
			switch {
			case l.fours != 0:
				s := sum
				if l.fours>>part&1 != 0 {
					s = fours[m]
				}
				c.k.MmaU8S8((*[4]ptx.Var[ptx.S32])(s), [4]ptx.B32{w[0][0], w[1][0], w[0][1], w[1][1]}, x(m, part))
				continue
			case l.sub == nil:
				c.multiplyTo(sum, w, x(m, part))
				continue
			}
			for step, s := range c.multiplyLevels(l, w, x(m, part), part) {
				if m == 0 {
					sub[step] = [2]ptx.S32{l.sub(0, part, step), l.sub(1, part, step)}
				}
				s.addTo(sum, sub[step])
			}
		}
	}
	whole := [2]ptx.F32{l.whole(0), l.whole(1)}
	for m, sum := range sums {
		value := f.unit
		if l.fours != 0 {
			sum.addTo(fours[m], [2]ptx.S32{ptx.S(4), ptx.S(4)})
			sum, value = fours[m], value/4
		}
		unit := c.units[m].Mul(ptx.F(value))
		sum.scaleTo(&c.total[0][m], [2]ptx.F32{whole[0].Mul(unit), whole[1].Mul(unit)})
		if l.less != nil {
			minus := c.units[m].Neg()
			less[m].scaleTo(&c.total[0][m], [2]ptx.F32{l.lessWhole(0).Mul(minus), l.lessWhole(1).Mul(minus)})
		}
	}
}
