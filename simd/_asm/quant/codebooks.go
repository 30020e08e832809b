package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/rayo-go/rayo/gguf/block"
)

// Code that reads the codes of codebooks, signs, and levels that do not have separate bytes.

// shiftOffset is added to levels in eighths to make them positive. Such levels are -1, 0 or 1 plus
// a shift of an eighth.
const shiftOffset = 9

// reserve allocates equal parts of the stack and returns the size of a part in bytes. A part holds
// the scales of rows products and the output of [coder.prepare]. It also loads the address of the
// codebook.
func (c *coder) reserve(parts, rows int) int {
	l := &c.l.Level
	sizes := []int{4 * 16 * rows, 0, 0, 0}
	if l.Grid != nil {
		if !c.byteCodes() {
			sizes[1] = 2 * l.Number.Items()
		}
		if c.packedSigns() {
			sizes[2] = l.Signs.Items()
		}
		if l.Shift != nil {
			sizes[3] = 2 * 32
		}
	}
	if l.Grid != nil {
		c.table = c.GP64()
		c.LEAQ(NewDataAddr(Symbol{Name: "·" + gridName(l.Grid)}, 0), c.table)
	}
	total := 0
	for _, n := range sizes {
		total += n
	}
	at := c.AllocLocal(parts * total)
	for i, m := range []*Mem{&c.products, &c.codes, &c.signs, &c.shifts} {
		*m = at
		at = at.Offset(sizes[i])
	}
	return total
}

// local returns the memory at offset at in the current part of the stack.
func (c *coder) local(m Mem, at int) Mem {
	m = m.Offset(at)
	if c.index != nil {
		m.Index, m.Scale = c.index, 1
	}
	return m
}

// packedSigns reports whether the format stores the signs of eight elements in seven bits.
func (c *coder) packedSigns() bool { return c.l.Level.Signs != nil && c.l.Level.Signs[0].Bits == 7 }

// byteCodes reports whether codes are whole bytes, which need no unpacking.
func (c *coder) byteCodes() bool {
	n := c.l.Level.Number
	return len(n) == 1 && n[0].Bits == 8
}

// code loads code i of the block.
func (c *coder) code(i int, to reg.GPVirtual) {
	if c.byteCodes() {
		c.MOVBQZX(Mem{Base: c.src, Disp: bit(&c.l.Level.Number[0], i) / 8}, to)
	} else {
		c.MOVWQZX(c.local(c.codes, 2*i), to)
	}
}

// prepare writes to the stack the codes of a block (16 bits each), its packed signs (eight bits for
// eight elements), and two copies of each shift of levels in eighths (16 bits).
func (c *coder) prepare() {
	l := &c.l.Level
	if l.Grid == nil {
		return
	}
	for i := 0; i < l.Number.Items() && !c.byteCodes(); i += 16 {
		c.VMOVDQU(c.words(l.Number, i), c.local(c.codes, 2*i))
	}
	if c.packedSigns() {
		v, low, high := c.YMM(), c.YMM(), c.YMM()
		c.VPACKUSWB(c.words(l.Signs, 16), c.words(l.Signs, 0), v)
		c.VPERMQ(U8(0xd8), v, v)
		// The eighth bit makes the number of ones even.
		var odd [32]byte
		for i := range odd {
			ones := i>>3&1 + i>>2&1 + i>>1&1 + i&1
			odd[i] = byte(ones % 2 << 7)
		}
		parity := c.YMM()
		c.VMOVDQU(c.constant(odd), parity)
		c.VPAND(c.constant(spreadByte(15)), v, low)
		c.VPSRLW(U8(4), v, high)
		c.VPAND(c.constant(spreadByte(15)), high, high)
		c.VPSHUFB(low, parity, low)
		c.VPSHUFB(high, parity, high)
		c.VPXOR(low, v, v)
		c.VPXOR(high, v, v)
		c.VMOVDQU(v, c.local(c.signs, 0))
	}
	for i := 0; l.Shift != nil && i < l.Shift.Items(); i += 16 {
		v, set := c.words(l.Shift, i), c.zeros()
		c.VPSUBW(v, set, set)
		c.VPANDN(c.constant(spreadByte(2)), set, set)
		c.VMOVDQU(set, c.local(c.shifts, 2*i))
	}
}

// words returns sixteen integers of 16 bits, or eight if there are no more.
func (c *coder) words(n block.Number, first int) reg.VecVirtual {
	var v reg.VecVirtual
	for i := range n {
		w := c.fieldWords(&n[i], first)
		if v == nil {
			v = w
		} else {
			c.VPOR(w, v, v)
		}
	}
	return v
}

// fieldWords returns items of a field as words. A shuffle collects the two bytes of each item, and
// a multiplication shifts its bits.
func (c *coder) fieldWords(f *block.Field, first int) reg.VecVirtual {
	const window = 16
	var index, factors [32]byte
	var bases [2]int
	same, shift := true, bit(f, first)%8
	for half := range bases {
		var at [8]int
		for i := range at {
			at[i] = bit(f, min(first+8*half+i, f.First+f.Items()-1))
		}
		bases[half] = at[0] / 8
		for _, b := range at {
			bases[half] = min(bases[half], b/8)
		}
		bases[half] = min(bases[half], c.l.Bytes-window)
		for i, b := range at {
			k := 16*half + 2*i
			low, up := b/8-bases[half], byte(b/8-bases[half]+1)
			if b%8+f.Bits <= 8 {
				up = 0x80
			}
			if low >= window || up == window || f.Bits > 9 {
				panic(fmt.Sprintf("%v: items of a field are far apart", c.f))
			}
			index[k], index[k+1] = byte(low), up
			factors[k] = 1 << (7 - b%8)
			same = same && b%8 == shift
		}
	}
	v := c.YMM()
	if bases[0] == bases[1] {
		c.VBROADCASTI128(Mem{Base: c.src, Disp: bases[0]}, v)
	} else {
		x := c.XMM()
		c.VMOVDQU(Mem{Base: c.src, Disp: bases[0]}, x)
		c.VINSERTI128(U8(1), Mem{Base: c.src, Disp: bases[1]}, x.AsY(), v)
	}
	c.VPSHUFB(c.constant(index), v, v)
	switch {
	case same && shift > 0:
		c.VPSRLW(U8(shift), v, v)
	case !same:
		c.VPMULLW(c.constant(factors), v, v)
		c.VPSRLW(U8(7), v, v)
	}
	if !same || f.Bits < 8 || shift > 0 || f.Bits > 8 {
		c.VPAND(c.constant(words(1<<f.Bits-1)), v, v)
	}
	if f.Shift > 0 {
		c.VPSLLW(U8(f.Shift), v, v)
	}
	return v
}

// gridLevels returns the rows of the codebook for the codes of run r.
func (c *coder) gridLevels(r int) reg.VecVirtual {
	l := &c.l.Level
	at := c.GP64()
	width := l.Grid.Width
	codes := run / width
	var halves [2]reg.VecVirtual
	for i := range codes {
		c.code(r*codes+i, at)
		m := Mem{Base: c.table, Index: at, Scale: uint8(width)}
		half, k := &halves[2*i/codes], i%(codes/2)
		switch {
		case k == 0 && width == 8:
			*half = c.XMM()
			c.VMOVQ(m, *half)
		case k == 0:
			*half = c.XMM()
			c.VMOVD(m, *half)
		case width == 8:
			c.VMOVHPS(m, *half, *half)
		default:
			c.VPINSRD(U8(k), m, *half, *half)
		}
	}
	v := c.YMM()
	c.VINSERTI128(U8(1), halves[1], halves[0].AsY(), v)
	switch n := l.Shift.Items(); n {
	case 0:
	case 8:
		s := c.YMM()
		c.VPBROADCASTW(c.local(c.shifts, 2*r), s)
		c.VPADDB(s, v, v)
	case 32:
		var index [32]byte
		for i := range index {
			index[i] = byte(2 * (i / 8))
		}
		s := c.YMM()
		c.VPBROADCASTQ(c.local(c.shifts, 8*r), s)
		c.VPSHUFB(c.constant(index), s, s)
		c.VPADDB(s, v, v)
	default:
		panic(fmt.Sprintf("%v: no code for %d shifts", c.f, n))
	}
	return v
}

// gridName returns the variable with the levels of a codebook. For levels in eighths it has 8 times
// the level plus 8.
func gridName(g *block.Grid) string {
	for _, f := range block.Formats() {
		if f.Layout().Level.Grid == g {
			return "int8Grid" + f.String()
		}
	}
	panic("a codebook of no format")
}

// sign returns the signs of run r as bytes of 1 and -1. It returns nil if the levels are signed.
func (c *coder) sign(r int) reg.VecVirtual {
	if c.l.Level.Signs == nil {
		return nil
	}
	m := c.local(c.signs, 4*r)
	if !c.packedSigns() {
		m = Mem{Base: c.src, Disp: bit(&c.l.Level.Signs[0], run*r) / 8}
	}
	var spread, ones [32]byte
	for i := range spread {
		spread[i], ones[i] = byte(i/8), 1<<(i%8)
	}
	v, one := c.YMM(), c.constant(ones)
	c.VPBROADCASTD(m, v)
	c.VPSHUFB(c.constant(spread), v, v)
	c.VPAND(one, v, v)
	c.VPCMPEQB(one, v, v)
	c.VPOR(c.constant(spreadByte(1)), v, v)
	return v
}

// ternary returns the digits in base 3 of run r. It multiplies bytes by powers of 3 modulo 256; the
// digit is the number of thirds of 256 in the product.
func (c *coder) ternary(r int) reg.VecVirtual {
	const window = 16
	var from, even, odd, index [32]byte
	for i := range from {
		e := r*run + i
		for k := range c.l.Level.Number {
			f := c.l.Level.Number[k]
			if e < f.First || e >= f.First+f.Items() {
				continue
			}
			f.Ternary = false
			at, power := bit(&f, e), 1
			for range at % 8 {
				power *= 3
			}
			from[i] = byte(at / 8)
			if i%2 == 0 {
				even[i] = byte(power)
			} else {
				odd[i-1] = byte(power)
			}
		}
	}
	v, x := c.YMM(), c.XMM()
	bases := [2]int{min(int(from[0]), c.l.Bytes-window), min(int(from[16]), c.l.Bytes-window)}
	moved := false
	for i, b := range from {
		index[i] = b - byte(bases[i/16])
		moved = moved || int(index[i]) != i%16
	}
	c.VMOVDQU(Mem{Base: c.src, Disp: bases[0]}, x)
	c.VINSERTI128(U8(1), Mem{Base: c.src, Disp: bases[1]}, x.AsY(), v)
	if moved {
		c.VPSHUFB(c.constant(index), v, v)
	}
	if even != words(1) || odd != words(1) {
		low, high := c.YMM(), c.YMM()
		c.VPMULLW(c.constant(even), v, low)
		c.VPAND(c.constant(words(255)), low, low)
		c.VPSRLW(U8(8), v, high)
		c.VPMULLW(c.constant(odd), high, high)
		c.VPSLLW(U8(8), high, high)
		c.VPOR(low, high, v)
	}
	digits := c.zeros()
	for _, third := range []byte{86, 171} {
		t := c.YMM()
		c.VPMAXUB(c.constant(spreadByte(third)), v, t)
		c.VPCMPEQB(v, t, t)
		c.VPSUBB(t, digits, digits)
	}
	return digits
}

// twoBits fills v with 32 consecutive items of two bits, from byte at of the block on.
func (c *coder) twoBits(v reg.VecVirtual, at, from int) {
	base := min(from, at+c.l.Bytes-16)
	var index, masks, levels [32]byte
	for i := range index {
		index[i] = byte(from - base + i/4)
		masks[i] = []byte{3, 12}[i%2]
		levels[i] = byte(i%16/4 + i%4) // one of them is 0
	}
	c.VBROADCASTI128(Mem{Base: c.src, Disp: base}, v)
	c.VPSHUFB(c.constant(index), v, v)
	upper := c.YMM()
	c.VPSRLW(U8(4), v, upper)
	c.VPBLENDW(U8(0xaa), upper, v, v)
	c.VPAND(c.constant(masks), v, v)
	table := c.YMM()
	c.VMOVDQU(c.constant(levels), table)
	c.VPSHUFB(v, table, v)
}

// eights fills v with items. Each group of eight items is in the same bits of eight bytes.
func (c *coder) eights(v reg.VecVirtual, at int, bits [run]int, shift int) {
	base := min(bits[0]/8, at+c.l.Bytes-16)
	var index [32]byte
	var shifts [8]int
	for i, b := range bits {
		if n := b/8 - base; n < 0 || n >= 16 || b%8 < shift {
			panic(fmt.Sprintf("%v: no code for a field of levels", c.f))
		}
		index[i] = byte(b/8 - base)
		if i%8 == 0 {
			shifts[i/4] = b%8 - shift
		}
	}
	c.VBROADCASTI128(Mem{Base: c.src, Disp: base}, v)
	c.VPSHUFB(c.constant(index), v, v)
	c.VPSRLVQ(c.dwords(shifts), v, v)
}

// spreadHalf returns a scale whose bits are the upper four bits of four words.
func (c *coder) spreadHalf(f *block.Float) reg.VecVirtual {
	r, mask, x, y := c.GP64(), c.GP64(), c.XMM(), c.YMM()
	for i, part := range f.Number {
		if part.At != f.Number[0].At+16*i || part.Shift != 4*i || part.At%16 != 12 {
			panic(fmt.Sprintf("%v: no code for its scale", c.f))
		}
	}
	c.MOVQ(Mem{Base: c.src, Disp: f.Number[0].At / 16 * 2}, r)
	c.MOVQ(U64(0xf000f000f000f000), mask)
	c.PEXTQ(mask, r, r)
	c.VMOVD(r.As32(), x)
	c.VPBROADCASTW(x, x)
	c.VCVTPH2PS(x, y)
	return y
}

// scales8 returns scales of eight bits, four for each block of two runs. It shifts the bits to
// those of a float32 with another exponent; a multiplication corrects the exponent, also of
// subnormal numbers.
func (c *coder) scales8(f *block.Float) []reg.VecVirtual {
	if f.Number.Items() != 4 || c.each() != 2 {
		panic(fmt.Sprintf("%v: no code for its scales", c.f))
	}
	at := f.Number[0].At / 8
	var all []reg.VecVirtual
	for b := 0; b < c.runs/2; b += 2 {
		x, y, none := c.XMM(), c.YMM(), c.XMM()
		c.VMOVD(Mem{Base: c.src, Disp: b*c.l.Bytes + at}, x)
		if b+1 < c.runs/2 {
			c.VPINSRD(U8(1), Mem{Base: c.src, Disp: (b+1)*c.l.Bytes + at}, x, x)
		}
		c.VPMOVZXBW(x, x)
		c.VPAND(low(c.alike(0x007f007f)), x, x)
		c.VPCMPEQW(low(c.alike(0x007f007f)), x, none)
		c.VPANDN(x, none, x)
		// The bits of a binary16 of another exponent bias. Processors convert subnormal numbers as fast as others, but multiply
		// subnormal float32 many times slower.
		c.VPSLLW(U8(7), x, x)
		c.VCVTPH2PS(x, y)
		c.VMULPS(c.alike(0x43000000), y, y) // 128
		all = append(all, y)
	}
	return all
}

// low returns the first 16 bytes of a constant.
func low(v Op) Op {
	if r, ok := v.(reg.VecVirtual); ok {
		return r.AsX()
	}
	return v
}
