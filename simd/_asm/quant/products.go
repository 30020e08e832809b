package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/rayo-go/rayo/gguf/block"
)

// multiplyAdd writes the code that adds each four products of the bytes in raw and the integers at
// x. With VNNI this is one instruction, which adds to the corrections. With AVX2, adjacent products
// are first added as 16 bits. This does not overflow: x is at most 127, unsigned codes are below
// 64, and signed codes are made positive (at most 128) by moving their signs to x; 2·127·128 is
// 32512.
func (c *coder) multiplyAdd(raw, size, sign reg.VecVirtual, x Mem, corrections Op) reg.VecVirtual {
	t := c.YMM()
	if c.vnni {
		c.VMOVDQU(corrections, t)
		c.VPDPBUSD(x, raw, t)
		return t
	}
	if c.signed() {
		c.VMOVDQU(x, t)
		c.VPSIGNB(sign, t, t)
		c.VPMADDUBSW(t, size, t)
	} else {
		c.VPMADDUBSW(x, raw, t)
	}
	c.VPMADDWD(c.constant(words(1)), t, t)
	if !c.signed() && c.offset() != 0 {
		c.VPADDD(corrections, t, t)
	}
	return t
}

// words returns sixteen equal numbers of 16 bits.
func words(n int) (b [32]byte) {
	for i := range 16 {
		b[2*i], b[2*i+1] = byte(n), byte(n>>8)
	}
	return b
}

// int8Offset returns the difference between the multiplied unsigned bytes and the levels. The
// corrections subtract the products of this offset.
func (c *coder) int8Offset() int {
	switch {
	case c.signed() && c.vnni:
		return 128
	case c.signed():
		return 0
	}
	return c.offset()
}

// operands holds the pointers of a product of rows of integers and one row of blocks.
type operands struct {
	rows                   int
	x, scales, sums, quads reg.GPVirtual
	stride, stride3        reg.GPVirtual // row stride of x and quads
	eighth, eighth3        reg.GPVirtual // row stride of scales
	acc, below             []reg.VecVirtual
	next                   int
}

// of returns the memory of a row, relative to a pointer. The row stride of x in bytes is the number
// of elements of a row; the stride of scales is an eighth of it, the stride of sums an eighth or a
// quarter.
func (o *operands) of(base reg.GPVirtual, row, disp int, one, three reg.GPVirtual, times uint8) Mem {
	m := Mem{Base: base, Disp: disp}
	switch row {
	case 1, 2:
		m.Index, m.Scale = one, uint8(row)*times
	case 3:
		m.Index, m.Scale = three, times
	}
	return m
}

// int8Dot writes the function that multiplies rows of integers by one row of blocks.
func (g *gen) int8Dot(f block.Format, rows int) {
	name := fmt.Sprintf("int8Dot%d%v%s", rows, f, g.name)
	g.function(name, "func(dst *float32, x *int8, scales, sums *float32, quads *int32, stride int, src *byte, blocks int)",
		fmt.Sprintf("%s is an int8DotFunc of %v for %d rows.", name, f, rows))
	o := &operands{rows: rows}
	load := func(p string) reg.GPVirtual { return g.Load(g.Param(p), g.GP64()).(reg.GPVirtual) }
	o.x, o.scales = load("x"), load("scales")
	whole := g.coder(f, 8)
	if f.Biased() {
		o.sums = load("sums")
	}
	if whole.int8Offset() != 0 {
		o.quads = load("quads")
	}
	g.src = load("src")
	left := load("blocks")
	o.strides(g, load)
	for range max(2, rows) {
		o.acc = append(o.acc, g.zeros())
	}
	if f.Biased() {
		for range rows {
			o.below = append(o.below, g.zeros())
		}
	}
	parts := 1
	if rows == 1 {
		parts = 2
	}
	size := whole.reserve(parts, rows)
	g.hold(spareRegisters-len(o.acc)-len(o.below), func(g *gen) {
		draft, d := g.coder(f, 8), *o
		draft.reserve(1, rows)
		draft.int8Super(&d)
	})
	if whole.short() {
		g.SUBQ(U8(8/whole.each()), left)
		g.JLT(LabelRef("short"))
	}
	if rows == 1 {
		whole.ahead(o, left, size)
	} else {
		g.Label("next")
		whole.int8Super(o)
	}
	if whole.short() {
		g.SUBQ(U8(8/whole.each()), left)
		g.JGE(LabelRef("next"))
		g.Label("short")
		g.ADDQ(U8(8/whole.each()), left)
		g.JEQ(LabelRef("end"))
		g.Label("nextShort")
		last := *whole
		last.runs, last.index = whole.each(), nil
		last.int8Super(o)
		g.DECQ(left)
		g.JNE(LabelRef("nextShort"))
		g.Label("end")
	} else {
		g.DECQ(left)
		g.JNE(LabelRef("next"))
	}
	if rows == 1 {
		g.VADDPS(o.acc[1], o.acc[0], o.acc[0])
	}
	g.held = nil
	dst := load("dst")
	for r := range rows {
		y := o.acc[r]
		if o.below != nil {
			g.VADDPS(o.below[r], y, y)
		}
		g.VMOVSS(g.total(y), Mem{Base: dst, Disp: 4 * r})
	}
	g.VZEROUPPER()
	g.RET()
}

// spareRegisters is the number of registers for accumulators and constants. The others hold the data of a run.
const spareRegisters = 10

func (o *operands) strides(g *gen, load func(string) reg.GPVirtual) {
	if o.rows == 1 {
		return
	}
	times3 := func(r reg.GPVirtual) reg.GPVirtual {
		t := g.GP64()
		g.LEAQ(Mem{Base: r, Index: r, Scale: 2}, t)
		return t
	}
	o.stride, o.eighth = load("stride"), g.GP64()
	g.MOVQ(o.stride, o.eighth)
	g.SHRQ(U8(3), o.eighth)
	if o.rows > 3 {
		o.stride3, o.eighth3 = times3(o.stride), times3(o.eighth)
	}
}

func (g *gen) zeros() reg.VecVirtual {
	v := g.YMM()
	g.VXORPS(v, v, v)
	return v
}

// total returns the sum of eight lanes.
func (g *gen) total(y reg.VecVirtual) reg.VecVirtual {
	t := g.XMM()
	g.VEXTRACTF128(U8(1), y, t)
	return g.totalOf(y.AsX().(reg.VecVirtual), t)
}

// totalOf returns the sum of the lanes of s and t, which it changes.
func (g *gen) totalOf(s, t reg.VecVirtual) reg.VecVirtual {
	g.VADDPS(t, s, s)
	g.VPERMILPS(U8(0x0e), s, t)
	g.VADDPS(t, s, s)
	g.VMOVSHDUP(s, t)
	g.VADDSS(t, s, s)
	return s
}

// int8Super writes the products of a super.
func (c *coder) int8Super(o *operands) {
	c.addBiases(o)
	c.factorsOf(o)
	c.int8Runs(o)
	c.advance(o)
}

// ahead writes the loop over supers for one row. It computes the factors and codes of a super while
// it multiplies the previous one. Computing them takes long, and the instructions that wait for
// them would otherwise fill the processor's queues.
func (c *coder) ahead(o *operands, left reg.GPVirtual, size int) {
	this, next, src, scales := c.GP64(), c.GP64(), c.GP64(), c.GP64()
	c.XORQ(this, this)
	c.MOVQ(U64(uint64(size)), next)
	c.index = this
	c.factorsOf(o)
	c.Label("next")
	bytes, blocks := 8/c.each()*c.l.Bytes, 8/c.each()
	c.LEAQ(Mem{Base: c.src, Disp: bytes}, src)
	c.LEAQ(Mem{Base: o.scales, Disp: 4 * 8}, scales)
	if c.short() {
		c.CMPQ(left, U8(blocks))
		c.CMOVQLT(c.src, src) // there is no next super: compute unused values from the current one
		c.CMOVQLT(o.scales, scales)
	} else {
		c.CMPQ(left, U8(1))
		c.CMOVQEQ(c.src, src)
		c.CMOVQEQ(o.scales, scales)
	}
	after := *o
	after.scales = scales
	here := c.src
	c.src, c.index = src, next
	c.factorsOf(&after)
	c.src, c.index = here, this
	c.prefetch()
	c.addBiases(o)
	c.int8Runs(o)
	c.advance(o)
	c.XORQ(I32(int32(size)), this)
	c.XORQ(I32(int32(size)), next)
}

// addBiases adds the biases.
func (c *coder) addBiases(o *operands) {
	sumTimes := uint8(run / c.group)
	for i, b := range c.biases() {
		for r := range o.rows {
			m := o.of(o.sums, r, 32*i, o.eighth, o.eighth3, sumTimes)
			if c.runs == 1 {
				sum := c.YMM()
				c.VBROADCASTSS(m, sum) // b is 0 in the other lanes
				c.VFMADD231PS(sum, b, o.below[r])
			} else {
				c.VFMADD231PS(m, b, o.below[r])
			}
		}
	}
}

// factorsOf writes the factors and codes of a super to the stack: 16 products of scales for each
// row, and the output of prepare.
func (c *coder) factorsOf(o *operands) {
	c.prepare()
	scales := c.scales()
	for r := range o.rows {
		m := o.of(o.scales, r, 0, o.eighth, o.eighth3, 1)
		p := c.local(c.products, 4*16*r)
		switch {
		case c.runs == 1:
			t := c.XMM()
			c.VMULSS(m, scales[0].AsX(), t)
			c.VMOVSS(t, p)
		case c.group == run:
			t := c.YMM()
			c.VMULPS(c.perRun(m, c.runs), scales[0], t)
			c.VMOVUPS(t, p)
		default:
			for i, s := range scales {
				d := c.YMM()
				if c.runs < 4 {
					x := c.perRun(m, c.runs).(reg.VecVirtual)
					c.VINSERTF128(U8(1), x.AsX(), x.AsY(), d)
				} else {
					c.VBROADCASTF128(m.Offset(16*i), d)
				}
				c.VPERMILPS(c.dwords([8]int{0, 0, 1, 1, 2, 2, 3, 3}), d, d)
				c.VMULPS(d, s, d)
				c.VMOVUPS(d, p.Offset(32*i))
			}
		}
	}
}

func (c *coder) int8Runs(o *operands) {
	for n := range c.runs {
		c.int8Run(o, n)
	}
}

// perRun returns n floats, and zeros in the other lanes.
func (c *coder) perRun(m Mem, n int) Op {
	x := c.XMM()
	switch n {
	case 8:
		return m
	case 4:
		c.VMOVUPS(m, x)
	case 2:
		c.VMOVSD(m, x)
	default:
		panic(fmt.Sprintf("%v: no code for %d runs", c.f, n))
	}
	return x.AsY()
}

// int8Run writes the products of one run.
func (c *coder) int8Run(o *operands, n int) {
	raw, sign := c.raw(n), c.sign(n)
	var size reg.VecVirtual
	switch {
	case c.signed() && c.vnni:
		if sign != nil {
			c.VPSIGNB(sign, raw, raw)
		}
		c.VPXOR(c.constant(spreadByte(0x80)), raw, raw)
	case sign != nil:
		size = raw
	case c.signed():
		size, sign = c.YMM(), raw
		c.VPABSB(raw, size)
	}
	for r := range o.rows {
		var corrections Op
		if o.quads != nil {
			corrections = o.of(o.quads, r, run*n, o.stride, o.stride3, 1)
		} else if c.vnni {
			corrections = c.constant([32]byte{})
		}
		t := c.multiplyAdd(raw, size, sign, o.of(o.x, r, run*n, o.stride, o.stride3, 1), corrections)
		c.VCVTDQ2PS(t, t)
		s, p := c.YMM(), c.local(c.products, 4*16*r)
		if c.group == run {
			c.VBROADCASTSS(p.Offset(4*n), s)
		} else {
			c.VBROADCASTSD(p.Offset(8*n), s)
			c.VPERMILPS(c.dwords([8]int{0, 0, 0, 0, 1, 1, 1, 1}), s, s)
		}
		c.VFMADD231PS(s, t, o.acc[(r+o.next)%len(o.acc)])
		if o.rows == 1 {
			o.next++
		}
	}
}

// advance advances the pointers past the super.
func (c *coder) advance(o *operands) {
	n := c.runs * run
	for _, p := range []struct {
		r    reg.GPVirtual
		step int
	}{
		{o.x, n}, {o.scales, n / 8}, {o.sums, 4 * n / c.group}, {o.quads, n},
		{c.src, (n + c.l.Elements - 1) / c.l.Elements * c.l.Bytes},
	} {
		if p.r != nil {
			c.ADDQ(I32(int32(p.step)), p.r)
		}
	}
}

// levels8 writes the function that decodes blocks to levels and one factor for each 16 levels.
func (g *gen) levels8(f block.Format) {
	name := fmt.Sprintf("int8Levels%v%s", f, g.name)
	g.function(name, "func(levels *int8, scales, biases *float32, src *byte, blocks int)", name+" is an int8LevelsFunc of "+f.String()+".")
	load := func(p string) reg.GPVirtual { return g.Load(g.Param(p), g.GP64()).(reg.GPVirtual) }
	o := &unpacked{levels: load("levels"), scales: load("scales")}
	if f.Biased() {
		o.biases = load("biases")
	}
	g.src = load("src")
	left := load("blocks")
	c := g.coder(f, f.Elements()/run)
	c.reserve(1, 0)
	g.Label("next")
	c.apart(o)
	g.DECQ(left)
	g.JNE(LabelRef("next"))
	g.VZEROUPPER()
	g.RET()
}

type unpacked struct{ levels, scales, biases reg.GPVirtual }

// apart writes the levels and factors of a super.
func (c *coder) apart(o *unpacked) {
	put := func(v []reg.VecVirtual, to reg.GPVirtual) {
		for i, s := range v {
			switch {
			case c.runs == 1:
				x := c.XMM()
				c.VUNPCKLPS(s.AsX(), s.AsX(), x)
				c.VMOVSD(x, Mem{Base: to})
			case c.group == run && c.runs == 2:
				x := c.XMM()
				c.VUNPCKLPS(s.AsX(), s.AsX(), x)
				c.VMOVUPS(x, Mem{Base: to})
			case c.group == run:
				for half := range c.runs / 4 {
					t, at := c.YMM(), c.YMM()
					k := 4 * half
					c.VMOVDQU(c.dwords([8]int{k, k, k + 1, k + 1, k + 2, k + 2, k + 3, k + 3}), at)
					c.VPERMPS(s, at, t)
					c.VMOVUPS(t, Mem{Base: to, Disp: 32 * half})
				}
			case c.runs == 2:
				c.VMOVUPS(s.AsX(), Mem{Base: to})
			default:
				c.VMOVUPS(s, Mem{Base: to, Disp: 32 * i})
			}
		}
	}
	c.prepare()
	put(c.scales(), o.scales)
	put(c.biases(), o.biases)
	for n := range c.runs {
		v := c.raw(n)
		if sign := c.sign(n); sign != nil {
			c.VPSIGNB(sign, v, v)
		}
		if z := c.offset(); z != 0 {
			c.VPSUBB(c.constant(spreadByte(byte(z))), v, v)
		}
		c.VMOVDQU(v, Mem{Base: o.levels, Disp: run * n})
	}
	n := c.runs * run
	c.ADDQ(I32(int32(n)), o.levels)
	c.ADDQ(I32(int32(n/4)), o.scales)
	if o.biases != nil {
		c.ADDQ(I32(int32(n/4)), o.biases)
	}
	c.ADDQ(I32(int32(c.l.Bytes)), c.src)
}

// int8Round writes the function that quantises floats to integers with a scale for each 32. It also
// adds each four integers and multiplies the sums by a number.
func (g *gen) int8Round() {
	name := "int8Round" + g.name
	g.function(name, "func(q *int8, scales *float32, quads *int32, times int32, x *float32, groups int)", name+" is an int8RoundFunc.")
	load := func(p string) reg.GPVirtual { return g.Load(g.Param(p), g.GP64()).(reg.GPVirtual) }
	q, scales, quads, x, left := load("q"), load("scales"), load("quads"), load("x"), load("groups")
	times := g.YMM()
	timesX := g.XMM()
	g.VMOVD(g.Load(g.Param("times"), g.GP32()), timesX)
	g.VPBROADCASTD(timesX, times)
	order, most127 := g.YMM(), g.XMM()
	g.VMOVDQU(g.dwords([8]int{0, 4, 1, 5, 2, 6, 3, 7}), order)
	g.VMOVSS(g.alike(0x42fe0000), most127)
	ones := g.YMM()
	g.VMOVDQU(g.constant(spreadByte(1)), ones)
	g.Label("next")
	var v [4]reg.VecVirtual
	most := g.YMM()
	for i := range v {
		v[i] = g.YMM()
		g.VMOVUPS(Mem{Base: x, Disp: 32 * i}, v[i])
		if i == 0 {
			g.VPAND(g.alike(1<<31-1), v[i], most)
			continue
		}
		t := g.YMM()
		g.VPAND(g.alike(1<<31-1), v[i], t)
		g.VPMAXSD(t, most, most) // nonnegative floats have the order of their bits, and NaN is above infinity
	}
	s, t := most.AsX(), g.XMM()
	g.VEXTRACTI128(U8(1), most, t)
	g.VPMAXSD(t, s, s)
	for _, n := range []uint64{0x0e, 0x01} {
		g.VPSHUFD(U8(n), s, t)
		g.VPMAXSD(t, s, s)
	}
	m, d := g.GP32(), g.XMM()
	g.VMOVD(s, m)
	g.CMPL(m, U32(0x7f800000))
	g.JAE(LabelRef("infinite"))
	g.CMPL(m, U32((127-100)<<23))
	g.JB(LabelRef("zero"))
	factor := g.XMM()
	g.VDIVSS(s, most127, factor)
	g.VDIVSS(most127, s, d)
	g.VMOVSS(d, Mem{Base: scales})
	f := g.YMM()
	g.VBROADCASTSS(factor, f)
	for _, w := range v {
		g.VMULPS(f, w, w)
		g.VCVTPS2DQ(w, w)
	}
	g.VPACKSSDW(v[1], v[0], v[0])
	g.VPACKSSDW(v[3], v[2], v[2])
	g.VPACKSSWB(v[2], v[0], v[0])
	g.VPERMD(v[0], order, v[0])
	g.VMOVDQU(v[0], Mem{Base: q})
	sums := g.YMM()
	g.VPMADDUBSW(v[0], ones, sums)
	g.VPMADDWD(g.constant(words(1)), sums, sums)
	g.VPMULLD(times, sums, sums)
	g.VMOVDQU(sums, Mem{Base: quads})
	g.Label("advance")
	g.ADDQ(U8(32), q)
	g.ADDQ(U8(4), scales)
	g.ADDQ(U8(32), quads)
	g.SUBQ(I32(-128), x)
	g.DECQ(left)
	g.JNE(LabelRef("next"))
	g.VZEROUPPER()
	g.RET()
	g.Label("infinite")
	g.MOVL(U32(0x7fc00000), m)
	g.JMP(LabelRef("none"))
	g.Label("zero")
	g.XORL(m, m)
	g.Label("none")
	g.MOVL(m, Mem{Base: scales})
	z := g.zeros()
	g.VMOVDQU(z, Mem{Base: q})
	g.VMOVDQU(z, Mem{Base: quads})
	g.JMP(LabelRef("advance"))
}
