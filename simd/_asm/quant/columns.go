package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/rayo-go/rayo/gguf/block"
)

// Products of one row of integers and many rows of blocks. The sums of the groups of a super are
// reduced to one vector of integers, or to two, before they are scaled: this takes fewer
// instructions than scaling eight partial sums of each group, and the factors stay in registers.

// columnOperands are the pointers of such a product. One index, in bytes of the scales, addresses
// all operands of the row of integers.
type columnOperands struct {
	x, scales, sums, quads, index reg.GPVirtual
	sizes                         reg.GPVirtual // absolute values of x
	acc, below                    reg.VecVirtual
}

// A loadKey identifies a vector of bytes of a super: sixteen bytes at low, and sixteen bytes at
// high, shifted to the right.
type loadKey struct{ low, high, shift int }

// shared returns a vector of bytes. If c.loaded is not nil, it loads each vector only once. Callers
// must not change the vector.
func (c *coder) shared(k loadKey) reg.VecVirtual {
	if v, ok := c.loaded[k]; ok {
		return v
	}
	v := c.YMM()
	low, high := Mem{Base: c.src, Disp: k.low}, Mem{Base: c.src, Disp: k.high}
	switch {
	case k.shift > 0:
		s := k.shift
		c.VPSRLVD(c.dwords([8]int{0, 0, 0, 0, s, s, s, s}), c.shared(loadKey{k.low, k.high, 0}), v)
	case k.high == k.low+16:
		c.VMOVDQU(low, v)
	case k.high == k.low:
		c.VBROADCASTI128(low, v)
	default:
		if k.high < 16 || k.low+32 > 8/c.each()*c.l.Bytes {
			panic(fmt.Sprintf("%v: bytes at %d and %d are outside of a super", c.f, k.low, k.high))
		}
		c.VMOVDQU(low, v)
		c.VPBLENDD(U8(0xf0), high.Offset(-16), v, v) // faster than VINSERTI128, which only one unit executes
	}
	if c.loaded != nil {
		c.loaded[k] = v
	}
	return v
}

// part returns bits of bytes: shifted to the right (to the left if shift is negative), then masked.
func (c *coder) part(v reg.VecVirtual, shift int, mask Op) reg.VecVirtual {
	w := c.YMM()
	switch {
	case shift > 0:
		c.VPSRLW(U8(shift), v, w)
		c.VPAND(mask, w, w)
	case shift < 0:
		c.VPSLLW(U8(-shift), v, w)
		c.VPAND(mask, w, w)
	default:
		c.VPAND(mask, v, w)
	}
	return w
}

// pairedField is field for a coder whose vectors are paired.
func (c *coder) pairedField(f *block.Field, n int) reg.VecVirtual {
	var bits [run]int
	for k := range bits {
		at, first := c.place(n/2 + k/16*4)
		bits[k] = 8*at + bit(f, first+n%2*16+k%16)
	}
	apart := func(stride int) bool {
		for k := range bits {
			if k%16 > 0 && bits[k] != bits[k-1]+stride {
				return false
			}
		}
		return true
	}
	last := 8/c.each()*c.l.Bytes - 16
	low, high := bits[0]/8, bits[16]/8
	switch {
	case apart(8) && bits[0]%8 <= bits[16]%8:
		v := c.shared(loadKey{low, high, bits[16]%8 - bits[0]%8})
		return c.part(v, bits[0]%8-f.Shift, c.constant(spreadByte(byte((1<<f.Bits-1)<<f.Shift))))
	case apart(1) && f.Bits == 1 && bits[0]%8 == 0 && bits[16]%8 == 0:
		// The bytes of a block, at most sixteen, are loaded once.
		at, _ := c.place(n / 2)
		from := low - at - bit(f, 0)/8
		k := loadKey{low - from, high - from, 0}
		if other, _ := c.place(n/2 + 4); k.high > last || c.each() > 4 || k.high-k.low != other-at || from > 14 {
			panic(fmt.Sprintf("%v: no code for bits of levels in pairs", c.f))
		}
		var spread, ones [32]byte
		for i := range spread {
			spread[i], ones[i] = byte(from+i%16/8), 1<<(i%8)
		}
		v, one := c.YMM(), c.constant(ones)
		c.VPSHUFB(c.constant(spread), c.shared(k), v)
		c.VPAND(one, v, v)
		c.VPCMPEQB(one, v, v)
		c.VPAND(c.constant(spreadByte(1<<f.Shift)), v, v)
		return v
	}
	panic(fmt.Sprintf("%v: no code for a field of levels in pairs", c.f))
}

// isPaired reports whether the vectors of a format are paired. Then the two halves of a group are
// in the same half of two vectors, whose products are added before they are widened.
func isPaired(f block.Format) bool {
	switch f {
	case block.Q4_0, block.Q4_1, block.Q5_0, block.Q5_1, block.Q4_K, block.Q5_K, block.IQ4_NL, block.IQ4_XS, block.MXFP4, block.TQ2_0, block.Q1_0:
		return true
	}
	return false
}

// hasColumns reports whether a format has this kernel. Formats with a codebook do not, because they
// write their codes to the stack ahead of time: see [coder.ahead].
func hasColumns(f block.Format) bool { return f.Layout().Level.Grid == nil }

// columnConstants returns the number of registers that hold constants.
func columnConstants(f block.Format) int {
	if f == block.Q5_0 || f == block.Q5_1 {
		return 4
	}
	return 6
}

// int8Columns writes the function that multiplies one row of integers by rows of blocks.
func (g *gen) int8Columns(f block.Format) {
	name := "int8Columns" + f.String() + g.name
	g.function(name, "func(dst *float32, x *int8, scales, sums *float32, quads *int32, src *byte, row, blocks, count int)",
		name+" is an int8ColumnsFunc of "+f.String()+".")
	load := func(p string) reg.GPVirtual { return g.Load(g.Param(p), g.GP64()).(reg.GPVirtual) }
	c := g.coder(f, 8)
	c.paired = isPaired(f)
	o := &columnOperands{x: load("x"), scales: load("scales"), index: g.GP64()}
	if f.Biased() {
		o.sums = load("sums")
	}
	if c.columnOffset() != 0 {
		o.quads = load("quads")
	}
	if c.absolute() {
		o.sizes = load("quads")
	}
	g.src = load("src")
	dst, end, skip, left := load("dst"), load("blocks"), load("row"), load("count")
	size := g.GP64()
	g.IMUL3Q(I32(int32(c.l.Bytes)), end, size)
	g.SUBQ(size, skip) // the bytes between rows
	if c.each() < 8 {
		g.SHLQ(U8(2), end)
		if c.each() > 1 {
			g.IMUL3Q(U8(uint8(c.each())), end, end)
		}
	} else {
		g.SHLQ(U8(5), end)
	}
	g.hold(columnConstants(f), func(g *gen) {
		draft, d := g.coder(f, 8), *o
		draft.paired = c.paired
		d.acc, d.below = g.YMM(), g.YMM()
		draft.columnSuper(&d)
	})
	g.Label("row")
	g.XORQ(o.index, o.index)
	o.acc = g.zeros()
	if f.Biased() {
		o.below = g.zeros()
	}
	g.Label("next")
	c.prefetch()
	c.columnSuper(o)
	g.ADDQ(I32(int32(8/c.each()*c.l.Bytes)), g.src)
	g.ADDQ(U8(32), o.index)
	g.CMPQ(o.index, end)
	g.JNE(LabelRef("next"))
	if o.below != nil {
		g.VADDPS(o.below, o.acc, o.acc)
	}
	g.VMOVSS(g.total(o.acc), Mem{Base: dst})
	g.ADDQ(U8(4), dst)
	g.ADDQ(skip, g.src)
	g.DECQ(left)
	g.JNE(LabelRef("row"))
	g.held = nil
	g.VZEROUPPER()
	g.RET()
}

// columnOffset returns the difference between the multiplied bytes and the levels.
func (c *coder) columnOffset() int {
	if c.signed() {
		return 0
	}
	return c.offset()
}

// absolute reports whether the kernel moves the signs of x to the levels and multiplies by absolute
// values of x, which are computed only once. It can do so if the absolute values of levels are at
// most 127.
func (c *coder) absolute() bool {
	least, _ := c.f.LevelRange()
	return c.l.Level.Table != nil && c.signed() && least >= -127
}

// at returns the memory of an operand with times bytes for each byte of the scales.
func (o *columnOperands) at(base reg.GPVirtual, times uint8, disp int) Mem {
	return Mem{Base: base, Index: o.index, Scale: times, Disp: disp}
}

// columnSuper writes the products of a super.
func (c *coder) columnSuper(o *columnOperands) {
	c.loaded = map[loadKey]reg.VecVirtual{}
	switch {
	case c.paired:
		c.columnGroups32(o, c.pairedTotals(o))
	case c.group == run:
		v := c.groupTotals(o)
		t := c.YMM()
		c.VPERM2I128(U8(0x31), v[1], v[0], t)
		c.VINSERTI128(U8(1), v[1].AsX(), v[0], v[0])
		c.VPADDD(t, v[0], v[0])
		c.columnGroups32(o, v[0])
	default:
		c.columnGroups16(o, c.groupTotals(o))
	}
	c.columnBiases(o)
	c.loaded = nil
}

// greatest returns the greatest absolute values of the levels and of the multiplied bytes.
func (c *coder) greatest() (level, code int) {
	least, most := c.f.LevelRange()
	return max(-least, most), max(-least, most, c.columnOffset()+most)
}

// fits reports whether the sum of the given number of products with bytes up to code fits into 16 bits.
func fits(products, code int) bool { return products*127*code < 1<<15 }

// pairedTotals returns the sums of eight groups.
func (c *coder) pairedTotals(o *columnOperands) reg.VecVirtual {
	_, code := c.greatest()
	var v [4]reg.VecVirtual
	for i := range v {
		a, b := c.products16(o, 2*i), c.products16(o, 2*i+1)
		if fits(4, code) {
			c.VPADDW(b, a, a)
			c.VPMADDWD(c.constant(words(1)), a, a)
		} else {
			c.VPMADDWD(c.constant(words(1)), a, a)
			c.VPMADDWD(c.constant(words(1)), b, b)
			c.VPADDD(b, a, a)
		}
		v[i] = a
		if i%2 == 1 {
			v[i-1] = c.addNeighbours(v[i-1], v[i], c.ones(fits(8, code)), nil)
		}
	}
	return c.addNeighbours(v[0], v[2], c.ones(fits(16, code)), nil)
}

// groupTotals returns two vectors of sums, multiplied by the small integer scales if there are any.
// Lanes 0 to 3 of the first vector have the sums of the first sixteen elements of runs 0 to 3, and
// lanes 4 to 7 the sums of their last sixteen elements. The second vector has the same for runs 4
// to 7.
func (c *coder) groupTotals(o *columnOperands) [2]reg.VecVirtual {
	level, code := c.greatest()
	early := c.group != run && o.quads != nil // corrections before the scales
	if !early {
		level = code
	}
	scales := c.scaleWords()
	var all [2]reg.VecVirtual
	for i := range all {
		var pair [2]reg.VecVirtual
		for j := range pair {
			n := 4*i + 2*j
			a, b := c.products16(o, n), c.products16(o, n+1)
			c.VPMADDWD(c.constant(words(1)), a, a)
			c.VPMADDWD(c.constant(words(1)), b, b)
			var correction Op
			if early {
				correction = o.at(o.quads, 4, 16*n)
			}
			pair[j] = c.addNeighbours(a, b, c.ones(fits(4, code)), correction)
		}
		factors := c.ones(fits(8, level))
		if scales != nil {
			factors = scales(i)
		}
		all[i] = c.addNeighbours(pair[0], pair[1], factors, nil)
	}
	return all
}

// ones returns factors of 1 for [coder.addNeighbours], or nil.
func (c *coder) ones(small bool) Op {
	if small {
		return c.constant(words(1))
	}
	return nil
}

// addNeighbours adds adjacent lanes of a and of b; in each half, the sums of a precede those of b.
// If factors is not nil, sums must fit into 16 bits; it adds correction to them and multiplies them
// by factors.
func (c *coder) addNeighbours(a, b reg.VecVirtual, factors, correction Op) reg.VecVirtual {
	if factors != nil {
		c.VPACKSSDW(b, a, a)
		if correction != nil {
			c.VPADDW(correction, a, a)
		}
		c.VPMADDWD(factors, a, a)
		return a
	}
	if correction != nil {
		panic("large sums with a correction")
	}
	t := c.YMM()
	c.VSHUFPS(U8(0xdd), b, a, t)
	c.VSHUFPS(U8(0x88), b, a, a)
	c.VPADDD(t, a, a)
	return a
}

// products16 returns the sums of each two products of vector n, as 16 bits.
func (c *coder) products16(o *columnOperands, n int) reg.VecVirtual {
	x := o.at(o.x, 8, run*n)
	raw, sign := c.columnRaw(n), c.sign(n)
	t := c.YMM()
	if !c.signed() {
		c.VPMADDUBSW(x, raw, t)
		return t
	}
	if o.sizes != nil {
		c.VPSIGNB(x, raw, raw)
		c.VMOVDQU(o.at(o.sizes, 8, run*n), t)
		c.VPMADDUBSW(raw, t, t)
		return t
	}
	size := raw
	if sign == nil {
		size, sign = c.YMM(), raw
		c.VPABSB(raw, size)
	}
	c.VMOVDQU(x, t)
	c.VPSIGNB(sign, t, t)
	c.VPMADDUBSW(t, size, t)
	return t
}

// scaleWords returns a function that returns the small scales of sixteen groups as factors of
// [coder.addNeighbours]; signed scales are multiplied by scaleUnit. It returns nil if the format
// has no small scales.
func (c *coder) scaleWords() func(i int) Op {
	bytes, ok := smallScales[c.f]
	if !ok {
		return nil
	}
	s, odd := bytes(c), 0
	if c.small8() {
		odd = 1
	}
	return func(i int) Op {
		var index [32]byte
		for k := range index {
			index[k] = 0x80
			if k%2 == odd {
				index[k] = byte(8*i + k%16/4*2 + k/16)
			}
		}
		v := c.YMM()
		c.VPSHUFB(c.constant(index), s, v)
		return v
	}
}

// small8 reports whether small scales are signed. Signed scales are moved to the upper half of
// words, which keeps their sign and multiplies them by scaleUnit (256). This does not overflow:
// 16·127·32·128·256 is below 2^31.
func (c *coder) small8() bool { return c.l.Sub.Signed || c.l.Sub.Add < 0 }

// smallScales are the functions that return the small scales of sixteen groups as bytes, in both halves.
var smallScales = map[block.Format]func(*coder) reg.VecVirtual{
	block.Q6_K: func(c *coder) reg.VecVirtual { return c.shared(loadKey{192, 192, 0}) },
	block.Q2_K: func(c *coder) reg.VecVirtual {
		return c.part(c.shared(loadKey{0, 0, 0}), 0, c.constant(spreadByte(15)))
	},
	block.Q3_K: func(c *coder) reg.VecVirtual {
		// Combine the low halves of eight bytes, their upper halves, and two bits of each of four bytes.
		low, high, y := c.YMM(), c.YMM(), c.YMM()
		c.VPBROADCASTQ(Mem{Base: c.src, Disp: 96}, low)
		c.VPSRLW(U8(4), low, high)
		c.VPUNPCKLQDQ(high, low, low)
		c.VPBROADCASTD(Mem{Base: c.src, Disp: 104}, y)
		c.VPSRLVD(c.dwords([8]int{0, 2, 4, 6, 0, 2, 4, 6}), y, y)
		c.VPAND(c.constant(spreadByte(3)), y, y)
		c.VPSLLW(U8(4), y, y)
		c.VPAND(c.constant(spreadByte(15)), low, low)
		c.VPOR(low, y, y)
		c.VPSUBB(c.constant(spreadByte(32)), y, y)
		return y
	},
}

// sixBits returns the small scales and the small factors of biases of Q4_K and Q5_K. The first four
// of each are the low six bits of eight bytes. The last four of each have their upper two bits in
// the upper bits of these bytes, and their low four bits in the next four bytes.
func (c *coder) sixBits() (scales, biases reg.VecVirtual) {
	x, low, upper, rest := c.shared(loadKey{4, 4, 0}), c.YMM(), c.YMM(), c.YMM()
	c.VPAND(c.constant(spreadByte(0x3f)), x, low)
	c.VPSRLD(U8(2), x, upper)
	c.VPAND(c.constant(spreadByte(0x30)), upper, upper)
	c.VPSHUFD(U8(0xaa), x, rest)
	c.VPSRLVD(c.dwords([8]int{0, 4, 0, 4, 0, 4, 0, 4}), rest, rest)
	c.VPAND(c.constant(spreadByte(0x0f)), rest, rest)
	c.VPOR(rest, upper, upper)
	c.VPUNPCKLDQ(upper, low, low) // scales, then biases, in both halves
	scales, biases = c.wideBytes(low, 0), c.wideBytes(low, 8)
	return scales, biases
}

// wideBytes returns eight bytes, from first on, as floats. Both halves of v are equal.
func (c *coder) wideBytes(v reg.VecVirtual, first int) reg.VecVirtual {
	var index [32]byte
	for k := range index {
		index[k] = 0x80
		if k%4 == 0 {
			index[k] = byte(first + k/4)
		}
	}
	w := c.YMM()
	c.VPSHUFB(c.constant(index), v, w)
	c.VCVTDQ2PS(w, w)
	return w
}

// twoScales returns the scale and the factor of the biases of a block that stores them next to each other.
func (c *coder) twoScales() (scale, bias reg.VecVirtual) {
	s, b := c.l.Scale.Number[0].At/8, c.l.Bias.Number[0].At/8
	if c.short() || b != s+2 || c.l.Scale.Encoding != block.Binary16 || c.l.Bias.Encoding != block.Binary16 {
		panic(fmt.Sprintf("%v: no code for its scales", c.f))
	}
	x, y := c.XMM(), c.YMM()
	scale, bias = c.YMM(), c.YMM()
	c.VPBROADCASTD(Mem{Base: c.src, Disp: s}, x)
	c.VCVTPH2PS(x, y)
	c.VMOVSLDUP(y, scale)
	c.VMOVSHDUP(y, bias)
	return scale, bias
}

// columnGroups32 adds the scaled sums of eight groups.
func (c *coder) columnGroups32(o *columnOperands, v reg.VecVirtual) {
	if o.quads != nil {
		c.VPADDD(o.at(o.quads, 1, 0), v, v)
	}
	c.VCVTDQ2PS(v, v)
	c.VMULPS(o.at(o.scales, 1, 0), v, v)
	if c.f == block.Q4_K || c.f == block.Q5_K {
		s, b := c.sixBits()
		d, m := c.twoScales()
		c.VMULPS(s, v, v)
		c.VFMADD231PS(d, v, o.acc)
		c.VMULPS(o.at(o.sums, 1, 0), b, b)
		c.VFNMADD231PS(m, b, o.below)
		return
	}
	if c.l.Sub.Number != nil {
		c.VMULPS(c.small(&c.l.Sub, 0), v, v)
	}
	c.VFMADD231PS(c.floats(&c.l.Scale), v, o.acc)
}

// columnGroups16 adds the scaled sums of sixteen groups.
func (c *coder) columnGroups16(o *columnOperands, v [2]reg.VecVirtual) {
	var d [2]reg.VecVirtual
	for i, t := range v {
		d[i] = c.YMM()
		c.VBROADCASTF128(o.at(o.scales, 1, 16*i), d[i])
		c.VCVTDQ2PS(t, t)
	}
	if _, ok := smallScales[c.f]; ok {
		c.VMULPS(d[0], v[0], v[0])
		c.VFMADD231PS(d[1], v[1], v[0])
		if c.f == block.Q2_K {
			c.columnQ2(o, v[0])
			return
		}
		s := c.floats(&c.l.Scale)
		if c.small8() {
			c.VMULPS(c.alike((127-8)<<23), s, s) // 1/scaleUnit
		}
		c.VFMADD231PS(s, v[0], o.acc)
		return
	}
	order := c.YMM()
	c.VMOVDQU(c.dwords([8]int{0, 2, 4, 6, 1, 3, 5, 7}), order)
	for i, s := range c.factors(&c.l.Scale, &c.l.Sub) {
		c.VPERMPS(s, order, s)
		c.VMULPS(d[i], v[i], v[i])
		c.VFMADD231PS(s, v[i], o.acc)
	}
}

// columnQ2 completes columnGroups16 for Q2_K, whose small factors of biases are the upper halves of
// the bytes of the small scales.
func (c *coder) columnQ2(o *columnOperands, v reg.VecVirtual) {
	x := c.part(c.shared(loadKey{0, 0, 0}), 4, c.constant(spreadByte(15)))
	a, b := c.wideBytes(x, 0), c.wideBytes(x, 8)
	d, m := c.twoScales()
	c.VFMADD231PS(d, v, o.acc)
	c.VMULPS(o.at(o.sums, 2, 0), a, a)
	c.VFMADD231PS(o.at(o.sums, 2, 32), b, a)
	c.VFNMADD231PS(m, a, o.below)
}

// columnBiases adds the biases.
func (c *coder) columnBiases(o *columnOperands) {
	if !c.f.Biased() || c.l.SubBias.Number != nil {
		return // the biases are added elsewhere
	}
	c.VFMADD231PS(o.at(o.sums, 1, 0), c.floats(&c.l.Bias), o.below)
}

// columnRaw is raw, except for TQ1_0. There it computes the bytes of a run from those of the
// previous run: multiplying a byte by 3 gives the next digit in base 3. The bytes have 128
// subtracted, so that signed comparisons work; a multiplication by 3 keeps this offset modulo 256.
func (c *coder) columnRaw(n int) reg.VecVirtual {
	if c.f != block.TQ1_0 {
		return c.raw(n)
	}
	biased := func(load func(m Mem, v Op), at int) reg.VecVirtual {
		v := c.YMM()
		load(Mem{Base: c.src, Disp: at}, v)
		c.VPXOR(c.constant(spreadByte(0x80)), v, v)
		return v
	}
	times3 := func(v reg.VecVirtual) reg.VecVirtual {
		w := c.YMM()
		c.VPADDB(v, v, w)
		c.VPADDB(v, w, w)
		return w
	}
	blend := func(mask uint8, a, b reg.VecVirtual) { c.VPBLENDD(U8(mask), b, a, a) }
	var v reg.VecVirtual
	switch {
	case n == 0:
		v = biased(func(m Mem, v Op) { c.VMOVDQU(m, v) }, 0)
	case n < 5:
		v = times3(c.last)
	case n == 5: // digits 0 and 1 of sixteen bytes
		v = biased(func(m Mem, v Op) { c.VBROADCASTI128(m, v) }, 32)
		blend(0xf0, v, times3(v))
	case n == 6: // digits 2 and 3
		v = times3(times3(c.last))
	case n == 7: // digit 4, and four of four bytes
		v = times3(times3(c.last))
		h := biased(func(m Mem, v Op) { c.VPBROADCASTD(m, v) }, 48)
		blend(0x10, v, h)
		for _, mask := range []uint8{0x20, 0x40, 0x80} {
			h = times3(h)
			blend(mask, v, h)
		}
	}
	c.last = v
	one, two := c.YMM(), c.YMM()
	c.VPCMPGTB(c.constant(spreadByte(85-128+256)), v, one)
	c.VPCMPGTB(c.constant(spreadByte(170-128)), v, two)
	c.VPADDB(two, one, one)
	c.VPABSB(one, one)
	return one
}

// prefetchAhead is the distance in bytes of the lines that are prefetched: about the bytes that arrive from memory during the
// latency of one line.
const prefetchAhead = 4096

// prefetch prefetches the lines that are prefetchAhead bytes after the beginning of a super. The
// hardware prefetcher alone leaves a third to half of the bandwidth unused on a Xeon, and it stops
// at the end of a page.
func (c *coder) prefetch() {
	for at := 0; at < 8/c.each()*c.l.Bytes; at += 64 {
		c.PREFETCHT0(Mem{Base: c.src, Disp: at + prefetchAhead})
	}
}
