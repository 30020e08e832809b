package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/rayo-go/rayo/gguf/block"
)

// Products of integers are derived from the layouts of package block: how the levels and the
// factors of a block become vectors of bytes and of floats.

// run is the number of elements of one vector of bytes.
const run = 32

// A coder writes the code that reads the blocks of a format. It processes a super at once: one
// block of 256 elements, or several short blocks.
type coder struct {
	*gen
	f     block.Format
	l     *block.Layout
	runs  int
	group int // elements with the same scale, 32 or 16

	// On the stack: the scales of up to four rows, and for blocks with a codebook the output of
	// [coder.prepare]. index, if not nil, is added to the addresses of all four.
	products, codes, signs, shifts Mem
	index                          reg.GPVirtual
	table                          reg.GPVirtual // the codebook

	order  []int                      // of the items that [coder.items] returns; nil for the order in the block
	loaded map[loadKey]reg.VecVirtual // vectors of bytes that several runs share; nil if they are loaded again

	// paired means that vector 2i+h of the bytes has elements 16h to 16h+15 of run i, followed by
	// those of run i+4.
	paired bool
	last   reg.VecVirtual // used by [coder.columnRaw]
}

// integers are the formats that have kernels for products of integers.
var integers = []block.Format{
	block.Q4_0, block.Q8_0, block.Q4_K, block.Q6_K, block.Q5_K, block.Q4_1, block.Q5_0, block.Q5_1,
	block.IQ4_NL, block.IQ4_XS, block.Q2_K, block.Q3_K, block.MXFP4,
	block.TQ1_0, block.TQ2_0, block.NVFP4, block.Q1_0, block.Q2_0,
	block.IQ1_S, block.IQ1_M, block.IQ2_XXS, block.IQ2_XS, block.IQ2_S, block.IQ3_XXS, block.IQ3_S,
}

func (g *gen) coder(f block.Format, runs int) *coder {
	c := &coder{gen: g, f: f, l: f.Layout(), runs: runs, group: min(run, f.Group())}
	if runs%c.each() != 0 || c.each() > 8 {
		panic(fmt.Sprintf("%v: blocks of %d elements", f, f.Elements()))
	}
	return c
}

// each returns the runs of a block.
func (c *coder) each() int { return c.l.Elements / run }

// short reports whether a super has several blocks.
func (c *coder) short() bool { return c.l.Elements < 8*run }

// place returns the first byte of the block of run r, and the index of the run's first element in this block.
func (c *coder) place(r int) (at, element int) {
	return r / c.each() * c.l.Bytes, r % c.each() * run
}

// bit returns the position of item i of a field, in bits.
func bit(f *block.Field, i int) int {
	i -= f.First
	at := f.At
	for _, s := range f.Steps {
		at += i % s.Count * s.Stride
		i /= s.Count
	}
	if i != 0 || f.Ternary {
		panic("an item outside of the field")
	}
	return at
}

// constant returns the operand of a constant: a register that [gen.hold] has loaded, or read-only memory.
func (g *gen) constant(b [32]byte) Op {
	g.uses[b]++
	if v, ok := g.held[b]; ok {
		return v
	}
	name, known := g.constants[b]
	if !known {
		name = fmt.Sprintf("int8Constant%d", len(g.constants))
		g.constants[b] = name
		g.later = append(g.later, func() {
			g.StaticGlobal(name)
			g.DataAttributes(attr.RODATA | attr.NOPTR)
			for i, v := range b {
				g.AddDatum(i, U8(v))
			}
		})
	}
	return NewDataAddr(Symbol{Name: name, Static: true}, 0)
}

// hold loads the n constants that body uses the most to registers. Loading them for every use would
// take longer than the products.
func (g *gen) hold(n int, body func(*gen)) {
	draft := newGen(g.name, g.vnni)
	draft.Function("draft")
	draft.src = draft.GP64()
	body(draft)
	var all [][32]byte
	for b := range draft.uses {
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b [32]byte) int {
		if c := draft.uses[b] - draft.uses[a]; c != 0 {
			return c
		}
		return slices.Compare(a[:], b[:])
	})
	g.held = nil
	held := map[[32]byte]reg.VecVirtual{}
	for _, b := range all[:min(n, len(all))] {
		if draft.uses[b] > 1 {
			held[b] = g.YMM()
			g.VMOVDQU(g.constant(b), held[b])
		}
	}
	g.held = held
}

func spreadByte(v byte) (b [32]byte) {
	for i := range b {
		b[i] = v
	}
	return b
}

// dwords returns a constant of eight integers.
func (g *gen) dwords(v [8]int) Op {
	var b [32]byte
	for i, n := range v {
		for j := range 4 {
			b[4*i+j] = byte(uint32(n) >> (8 * j))
		}
	}
	return g.constant(b)
}

// raw returns the codes of run r as bytes or, for a format with a table, the levels.
func (c *coder) raw(r int) reg.VecVirtual {
	switch {
	case c.l.Level.Grid != nil:
		return c.gridLevels(r)
	case c.l.Level.Number[0].Ternary:
		return c.ternary(r)
	}
	var v reg.VecVirtual
	for i := range c.l.Level.Number {
		f := c.field(&c.l.Level.Number[i], r)
		if v == nil {
			v = f
		} else {
			c.VPOR(f, v, v)
		}
	}
	if t := c.l.Level.Table; t != nil {
		var b [32]byte
		for i := range b {
			b[i] = byte(t[i%16%len(t)] + c.tableOffset())
		}
		table, ok := c.constant(b).(reg.VecVirtual)
		if !ok {
			table = c.YMM()
			c.VMOVDQU(c.constant(b), table)
		}
		c.VPSHUFB(v, table, v)
	}
	return v
}

// tableOffset returns the offset that makes the levels of a table positive, if they are small.
func (c *coder) tableOffset() int8 {
	least := int8(0)
	for _, v := range c.l.Level.Table {
		least = min(least, v)
	}
	if least < -64 {
		return 0
	}
	return -least
}

// offset returns the difference between the bytes that raw returns and the levels.
func (c *coder) offset() int {
	switch l := &c.l.Level; {
	case l.Table != nil:
		return int(c.tableOffset())
	case l.Shift != nil:
		return shiftOffset
	}
	return -c.l.Level.Offset
}

// signed reports whether the bytes that raw returns are in two's complement.
func (c *coder) signed() bool {
	return c.l.Level.Signed || c.l.Level.Signs != nil || c.l.Level.Table != nil && c.tableOffset() == 0
}

// field returns the items of a field for the elements of run r, shifted as the field says.
func (c *coder) field(f *block.Field, r int) reg.VecVirtual {
	if c.paired {
		return c.pairedField(f, r)
	}
	at, first := c.place(r)
	var bits [run]int
	for i := range bits {
		bits[i] = bit(f, first+i) + 8*at
	}
	v := c.YMM()
	mask := c.constant(spreadByte(byte((1<<f.Bits - 1) << f.Shift)))
	from := Mem{Base: c.src, Disp: bits[0] / 8}
	apart := func(from, to, stride int) bool {
		for i := from + 1; i < to; i++ {
			if bits[i] != bits[i-1]+stride {
				return false
			}
		}
		return true
	}
	low, high := bits[0]%8-f.Shift, bits[16]%8-f.Shift
	switch {
	case apart(0, run, 8):
		w := c.shared(loadKey{bits[0] / 8, bits[0]/8 + 16, 0})
		if f.Bits == 8 {
			return w
		}
		return c.part(w, low, mask)
	case apart(0, 16, 8) && apart(16, run, 8) && bits[0]/8 == bits[16]/8 && low >= 0 && high >= 0:
		c.VBROADCASTI128(from, v)
		c.VPSRLVD(c.dwords([8]int{low, low, low, low, high, high, high, high}), v, v)
	case apart(0, run, 1) && bits[0]%8 == 0 && f.Bits == 1:
		var spread, ones [32]byte
		for i := range spread {
			spread[i], ones[i] = byte(i/8), 1<<(i%8)
		}
		one := c.constant(ones)
		c.VPBROADCASTD(from, v)
		c.VPSHUFB(c.constant(spread), v, v)
		c.VPAND(one, v, v)
		c.VPCMPEQB(one, v, v)
	case apart(0, run, 2) && bits[0]%8 == 0 && f.Bits == 2 && f.Shift == 0:
		c.twoBits(v, at, bits[0]/8)
		return v
	case apart(0, 8, 8) && apart(8, 16, 8) && apart(16, 24, 8) && apart(24, run, 8):
		c.eights(v, at, bits, f.Shift)
	default:
		panic(fmt.Sprintf("%v: no code for a field of levels", c.f))
	}
	c.VPAND(mask, v, v)
	return v
}

// scales returns the scales of the groups of the super, eight in a vector, and biases returns the
// biases. For a single run only the first lane is used.
func (c *coder) scales() []reg.VecVirtual { return c.factors(&c.l.Scale, &c.l.Sub) }

func (c *coder) biases() []reg.VecVirtual {
	if !c.f.Biased() {
		return nil
	}
	return c.factors(&c.l.Bias, &c.l.SubBias)
}

// factors returns the products of scales and small factors.
func (c *coder) factors(f *block.Float, sub *block.Integer) []reg.VecVirtual {
	if f.Encoding == block.UE4M3 {
		return c.scales8(f)
	}
	d := c.floats(f)
	if sub.Number == nil {
		return []reg.VecVirtual{d}
	}
	var all []reg.VecVirtual
	for first := 0; first < sub.Number.Items(); first += 8 {
		v := c.small(sub, first)
		c.VMULPS(d, v, v)
		all = append(all, v)
	}
	return all
}

// floats returns the scale of each short block, or the scale of the single block in all lanes.
func (c *coder) floats(f *block.Float) reg.VecVirtual {
	y := c.YMM()
	byteOf := func(r int) int { return r/c.each()*c.l.Bytes + f.Number[0].At/8 }
	if len(f.Number) == 4 {
		return c.spreadHalf(f)
	}
	if len(f.Number) != 1 || f.Number.Items() != 1 {
		panic(fmt.Sprintf("%v: no code for its scales", c.f))
	}
	switch {
	case f.Encoding == block.Binary16 && !c.short():
		x := c.XMM()
		c.VPBROADCASTW(Mem{Base: c.src, Disp: byteOf(0)}, x)
		c.VCVTPH2PS(x, y)
	case f.Encoding == block.Binary16:
		c.VCVTPH2PS(c.halves(byteOf), y)
	case f.Encoding == block.E8M0 && c.short():
		x := c.XMM()
		c.VPXOR(x, x, x)
		for r := range c.runs {
			c.VPINSRB(U8(r), Mem{Base: c.src, Disp: byteOf(r)}, x, x)
		}
		c.VPMOVZXBD(x, y)
		// The exponent is v-1, except for v = 0 and 1, which are subnormal.
		v := c.YMM()
		c.VMOVDQA(y, v)
		c.VPADDD(c.alike(-1), v, y)
		c.VPMAXSD(c.alike(0), y, y)
		c.VPSLLD(U8(23), y, y)
		for e := range 2 {
			least := c.YMM()
			c.VPCMPEQD(c.alike(e), v, least)
			c.VPAND(c.alike(0x200000<<e), least, least)
			c.VPOR(least, y, y)
		}
	default:
		panic(fmt.Sprintf("%v: no code for its scales", c.f))
	}
	return y
}

// halves returns the binary16 of each run of short blocks. byteOf returns its offset.
func (c *coder) halves(byteOf func(r int) int) reg.VecVirtual {
	x, second := c.XMM(), c.XMM()
	switch {
	case c.each() == 4:
		c.VPBROADCASTW(Mem{Base: c.src, Disp: byteOf(0)}, x)
		if c.runs == 8 {
			c.VPBROADCASTW(Mem{Base: c.src, Disp: byteOf(4)}, second)
			c.VPUNPCKLQDQ(second, x, x)
		}
	case c.each() == 2 && c.runs == 8:
		c.VPXOR(x, x, x)
		for r := 0; r < c.runs; r += 2 {
			c.VPINSRW(U8(r), Mem{Base: c.src, Disp: byteOf(r)}, x, x)
		}
		c.VPSLLD(U8(16), x, second)
		c.VPOR(second, x, x)
	default:
		c.VPXOR(x, x, x)
		for r := range c.runs {
			c.VPINSRW(U8(r), Mem{Base: c.src, Disp: byteOf(r)}, x, x)
		}
	}
	return x
}

// alike returns a constant of eight equal integers.
func (g *gen) alike(n int) Op { return g.dwords([8]int{n, n, n, n, n, n, n, n}) }

// small returns eight of the small factors as floats.
func (c *coder) small(n *block.Integer, first int) reg.VecVirtual {
	var v reg.VecVirtual
	bits := 0
	for i := range n.Number {
		f := &n.Number[i]
		w := c.items(f, first)
		if v == nil {
			v = w
		} else {
			c.VPOR(w, v, v)
		}
		bits = max(bits, f.Bits+f.Shift)
	}
	if n.Signed {
		c.VPSLLD(U8(32-bits), v, v)
		c.VPSRAD(U8(32-bits), v, v)
	}
	if c.l.Level.Grid != nil {
		c.VCVTDQ2PS(v, v)
		for i, x := range []float32{n.Mul, n.Add} {
			if c.l.Level.Shift != nil {
				x /= 8 // the levels are multiplied by 8
			}
			constant := c.alike(int(math.Float32bits(x)))
			if i == 0 {
				c.VMULPS(constant, v, v)
			} else {
				c.VADDPS(constant, v, v)
			}
		}
		return v
	}
	add := n.Add
	if n.Mul < 0 {
		add = -add
	}
	if add != float32(int(add)) || n.Mul != 1 && n.Mul != -1 {
		panic(fmt.Sprintf("%v: no code for its small scales", c.f))
	}
	if add != 0 {
		c.VPADDD(c.alike(int(add)), v, v)
	}
	c.VCVTDQ2PS(v, v)
	if n.Mul < 0 {
		c.VXORPS(c.alike(-1<<31), v, v)
	}
	return v
}

// apartItems fills v with eight items, if each is in the uppermost bits of its own 32-bit word. It
// reports whether they are.
func (c *coder) apartItems(v reg.VecVirtual, f *block.Field, first int) bool {
	at := bit(f, first) + f.Bits - 32
	if at < 32 || at%8 != 0 || c.order != nil || f.Shift != 0 {
		return false
	}
	apart := bit(f, first+1) - bit(f, first)
	for i := range 8 {
		if bit(f, first+i) != bit(f, first)+i*apart {
			return false
		}
	}
	from := Mem{Base: c.src, Disp: at / 8}
	switch apart {
	case 32:
		c.VMOVDQU(from, v)
	case 64:
		c.VMOVDQU(from.Offset(-4), v) // there are four bytes of the block before it
		c.VSHUFPS(U8(0xdd), from.Offset(28), v, v)
		c.VPERMQ(U8(0xd8), v, v)
	default:
		return false
	}
	c.VPSRLD(U8(32-f.Bits), v, v)
	return true
}

// items returns eight items of a field as integers.
func (c *coder) items(f *block.Field, first int) reg.VecVirtual {
	const window = 16
	var at, shifts [8]int
	least, most := bit(f, first)/8, 0
	for i := range at {
		k := i
		if c.order != nil {
			k = c.order[i]
		}
		b := bit(f, first+k)
		at[i], shifts[i] = b/8, b%8
		if b%8+f.Bits > 8 {
			if c.order != nil {
				panic(fmt.Sprintf("%v: no code for its small scales", c.f))
			}
			v := c.words(block.Number{*f}, first)
			c.VPMOVZXWD(v.AsX(), v)
			return v
		}
		least, most = min(least, at[i]), max(most, at[i])
	}
	base := min(least, c.l.Bytes-window) // does not read after the block
	v := c.YMM()
	if c.apartItems(v, f, first) {
		return v
	}
	if most >= base+window {
		x := c.XMM()
		c.VPXOR(x, x, x)
		for i, b := range at {
			c.VPINSRB(U8(i), Mem{Base: c.src, Disp: b}, x, x)
		}
		c.VPMOVZXBD(x, v)
	} else {
		var index [32]byte
		for i := range index {
			index[i] = 0x80
			if i%4 == 0 {
				index[i] = byte(at[i/4] - base)
			}
		}
		c.VBROADCASTI128(Mem{Base: c.src, Disp: base}, v)
		c.VPSHUFB(c.constant(index), v, v)
	}
	if shifts != [8]int{} {
		c.VPSRLVD(c.dwords(shifts), v, v)
	}
	if f.Bits < 8 {
		c.VPAND(c.alike(1<<f.Bits-1), v, v)
	}
	if f.Shift > 0 {
		c.VPSLLD(U8(f.Shift), v, v)
	}
	return v
}
