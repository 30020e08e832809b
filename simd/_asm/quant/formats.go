package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/rayo-go/rayo/gguf/block"
)

// gen is a build context for vectors of a given number of lanes.
type gen struct {
	*build.Context
	name  string
	lanes int
	vnni  bool // products of integers by VPDPBUSD

	// constants maps the bytes of constants of integer products to their symbols.
	constants map[[32]byte]string
	uses      map[[32]byte]int
	held      map[[32]byte]reg.VecVirtual // constants in registers
	later     []func()

	src     reg.GPVirtual // the block
	scratch Mem           // on the stack
	ahead   int           // prefetch distance of [gen.loop] in bytes; 0 for no prefetch

	// emit receives the numbers of a group, which are terms times scale minus min. min is nil for
	// formats without minimums.
	emit func(scale, min reg.Register, terms ...term)
	// minima receives the minimums of the eight groups of a block and returns a function that
	// returns the min argument of emit for group i. It is nil if emit takes no min.
	minima func(v reg.VecVirtual) func(i int) reg.Register
	// offset receives the offset of a short block, which is added to all its numbers, and returns
	// the register that emit adds instead of subtracting a minimum. It is nil if emit adds nothing.
	offset func(v reg.VecVirtual) reg.Register
}

// A term is a vector of integers, as floats, and their position in the block. emit may overwrite
// it.
type term struct {
	v  reg.VecVirtual
	at int
}

func (g *gen) vec() reg.VecVirtual {
	if g.lanes == 16 {
		return g.ZMM()
	}
	return g.YMM()
}

func (g *gen) and(a, b, dst reg.VecVirtual) {
	if g.lanes == 16 {
		g.VPANDD(a, b, dst)
	} else {
		g.VPAND(a, b, dst)
	}
}

func (g *gen) or(a, b, dst reg.VecVirtual) {
	if g.lanes == 16 {
		g.VPORD(a, b, dst)
	} else {
		g.VPOR(a, b, dst)
	}
}

// all returns a vector with n in all lanes.
func (g *gen) all(n uint32) reg.VecVirtual {
	r, x, v := g.GP32(), g.XMM(), g.vec()
	g.MOVL(U32(n), r)
	g.VMOVD(r, x)
	g.VPBROADCASTD(x, v)
	return v
}

// bytes loads one byte of the block for each lane, as integers.
func (g *gen) bytes(at int) reg.VecVirtual {
	v := g.vec()
	g.VPMOVZXBD(Mem{Base: g.src, Disp: at}, v)
	return v
}

// half broadcasts a binary16 of the block.
func (g *gen) half(at int) reg.VecVirtual {
	m, v := Mem{Base: g.src, Disp: at}, g.vec()
	if g.lanes == 16 {
		y := g.YMM()
		g.VPBROADCASTW(m, y)
		g.VCVTPH2PS(y, v)
		return v
	}
	x := g.XMM()
	g.VPBROADCASTW(m, x)
	g.VCVTPH2PS(x, v)
	return v
}

// move returns v shifted to the left, or to the right if n is negative.
func (g *gen) move(v reg.VecVirtual, n int) reg.VecVirtual {
	switch {
	case n > 0:
		w := g.vec()
		g.VPSLLD(U8(n), v, w)
		return w
	case n < 0:
		w := g.vec()
		g.VPSRLD(U8(-n), v, w)
		return w
	}
	return v
}

// masked returns v & mask.
func (g *gen) masked(v, mask reg.VecVirtual) reg.VecVirtual {
	w := g.vec()
	g.and(v, mask, w)
	return w
}

// levels returns a function that converts the low bits of integers to floats and subtracts zero.
// With AVX-512 it uses a table and ignores the other bits; with AVX2 they must be 0.
func (g *gen) levels(bits int, zero uint32) func(q reg.VecVirtual) reg.VecVirtual {
	if g.lanes == 16 {
		var table []reg.VecVirtual
		for at := 0; at < 1<<bits; at += 16 {
			v := g.vec()
			g.loadCounts(0, v)
			if n := int32(at) - int32(zero); n != 0 {
				g.VPADDD(g.all(uint32(n)), v, v)
			}
			g.VCVTDQ2PS(v, v)
			table = append(table, v)
		}
		return func(q reg.VecVirtual) reg.VecVirtual {
			v := g.vec()
			if len(table) == 1 {
				g.VPERMPS(table[0], q, v)
				return v
			}
			g.VMOVDQA32(q, v)
			g.VPERMI2PS(table[1], table[0], v)
			return v
		}
	}
	var z reg.VecVirtual
	if zero != 0 {
		z = g.all(zero)
	}
	return func(q reg.VecVirtual) reg.VecVirtual {
		v := g.vec()
		if zero != 0 {
			g.VPSUBD(z, q, v)
			g.VCVTDQ2PS(v, v)
		} else {
			g.VCVTDQ2PS(q, v)
		}
		return v
	}
}

// nibble returns the low (or high) four bits of integers below 256, as input of a levels function
// of four bits.
func (g *gen) nibble(q, mask reg.VecVirtual, high bool) reg.VecVirtual {
	switch {
	case high:
		return g.move(q, -4)
	case g.lanes == 16:
		return q
	}
	return g.masked(q, mask)
}

// fifth returns integers whose low four bits are the low (or high) four bits of q, and whose fifth
// bit is from bits.
func (g *gen) fifth(q, bits, low, bit reg.VecVirtual, high bool) reg.VecVirtual {
	if high {
		q = g.move(q, -4)
	}
	v := g.vec()
	if g.lanes == 16 {
		const pick = 0xca // destination ? first : second, bitwise
		g.VMOVDQA32(low, v)
		g.VPTERNLOGD(U8(pick), bits, q, v)
		return v
	}
	if !high {
		q = g.masked(q, low)
	}
	g.and(bits, bit, v)
	g.or(q, v, v)
	return v
}

// counts is a table of 0, 1, 2 …, 15.
func (g *gen) counts() {
	g.StaticGlobal("quantCounts")
	g.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 16 {
		g.AddDatum(4*i, U32(i))
	}
}

// setup writes the constants of a format, and returns a function that writes the code for a block.
func (g *gen) setup(f block.Format) func() {
	switch f {
	case block.Q4_0:
		return g.q4(2, 8)
	case block.Q4_1:
		return g.q4(4, 0)
	case block.Q5_0:
		return g.q5(2, 16)
	case block.Q5_1:
		return g.q5(4, 0)
	case block.Q8_0:
		return g.q8
	case block.Q4_K:
		return g.q4K()
	case block.Q5_K:
		return g.q5K()
	case block.Q6_K:
		return g.q6K()
	}
	panic(fmt.Sprintf("no code for %v", f))
}

// offsets reports whether blocks of a format have an offset, which follows the scale.
func offsets(f block.Format) bool { return f == block.Q4_1 || f == block.Q5_1 }

// head loads the scale and, if at > 2, the offset that follows it.
func (g *gen) head(at int) (scale reg.VecVirtual, offset reg.Register) {
	scale = g.half(0)
	if at > 2 {
		offset = g.offset(g.half(2))
	}
	return scale, offset
}

// q4 is setup for formats with four-bit levels from byte at on. Level zero decodes to 0.
func (g *gen) q4(at int, zero uint32) func() {
	low, float := g.all(15), g.levels(4, zero)
	return func() {
		d, m := g.head(at)
		var terms []term
		for j := 0; j < 16; j += g.lanes {
			q := g.bytes(at + j)
			terms = append(terms, term{float(g.nibble(q, low, false)), j}, term{float(g.nibble(q, low, true)), j + 16})
		}
		g.emit(d, m, terms...)
	}
}

// q5 is setup for formats with the fifth bits from byte at on, followed by the levels.
func (g *gen) q5(at int, zero uint32) func() {
	low, bit, float := g.all(15), g.all(16), g.levels(5, zero)
	return func() {
		d, m := g.head(at)
		bits := g.vec()
		g.VPBROADCASTD(Mem{Base: g.src, Disp: at}, bits)
		// Move bit j, and bit 16+j, to bit 4 of lane j.
		first, second := g.move(bits, 4), g.move(bits, -12)
		var terms []term
		for j := 0; j < 16; j += g.lanes {
			q, shift := g.bytes(at+4+j), g.vec()
			g.loadCounts(j, shift)
			for i, b := range []reg.VecVirtual{first, second} {
				h := g.vec()
				g.VPSRLVD(shift, b, h)
				terms = append(terms, term{float(g.fifth(q, h, low, bit, i > 0)), j + 16*i})
			}
		}
		g.emit(d, m, terms...)
	}
}

// loadCounts loads the numbers from j on.
func (g *gen) loadCounts(j int, v reg.VecVirtual) {
	m := NewDataAddr(Symbol{Name: "quantCounts", Static: true}, 4*j)
	if g.lanes == 16 {
		g.VMOVDQU32(m, v)
	} else {
		g.VMOVDQU(m, v)
	}
}

// signed loads signed bytes as floats.
func (g *gen) signed(m Mem) reg.VecVirtual {
	v := g.vec()
	g.VPMOVSXBD(m, v)
	g.VCVTDQ2PS(v, v)
	return v
}

func (g *gen) q8() {
	d := g.half(0)
	var terms []term
	for j := 0; j < 32; j += g.lanes {
		terms = append(terms, term{g.signed(Mem{Base: g.src, Disp: 2 + j}), j})
	}
	g.emit(d, nil, terms...)
}

// groups decodes the scales and minimums of the eight groups; groups in package block describes the
// packing. It returns functions that return a scale, broadcast from the stack, and a minimum.
func (g *gen) groups() (scale func(i int) reg.VecVirtual, min func(i int) reg.Register) {
	word := func(at int) reg.GPVirtual {
		r := g.GP32()
		g.MOVL(Mem{Base: g.src, Disp: at}, r)
		return r
	}
	low := word(12) // low halves of the last four scales and minimums
	for i, at := range []int{4, 8} {
		w := word(at)
		upper, rest := g.GP32(), g.GP32()
		g.MOVL(w, upper)
		g.SHRL(U8(2), upper) // bits 6 and 7 become 4 and 5
		g.ANDL(U32(0x30303030), upper)
		g.MOVL(low, rest)
		if i > 0 {
			g.SHRL(U8(4), rest)
		}
		g.ANDL(U32(0x0f0f0f0f), rest)
		g.ORL(upper, rest)
		g.ANDL(U32(0x3f3f3f3f), w)
		all, other := w.As64(), rest.As64()
		g.SHLQ(U8(32), other)
		g.ORQ(other, all)
		x, h, v, d := g.XMM(), g.XMM(), g.YMM(), g.YMM()
		g.VMOVQ(all, x)
		g.VPMOVZXBD(x, v)
		g.VCVTDQ2PS(v, v)
		g.VPBROADCASTW(Mem{Base: g.src, Disp: 2 * i}, h)
		g.VCVTPH2PS(h, d)
		g.VMULPS(d, v, v)
		if i > 0 {
			min = g.minima(v)
		} else {
			g.VMOVUPS(v, g.scratch)
		}
	}
	return g.scale, min
}

// scale broadcasts a float from the stack.
func (g *gen) scale(i int) reg.VecVirtual {
	v := g.vec()
	g.VBROADCASTSS(g.scratch.Offset(4*i), v)
	return v
}

// run32 loads 32 bytes of the block as integers.
func (g *gen) run32(at int) []reg.VecVirtual {
	var q []reg.VecVirtual
	for j := 0; j < 32; j += g.lanes {
		q = append(q, g.bytes(at+j))
	}
	return q
}

func (g *gen) q4K() func() {
	g.scratch = g.AllocLocal(64)
	low, float := g.all(15), g.levels(4, 0)
	return func() {
		scale, min := g.groups()
		for i := range 4 {
			q := g.run32(16 + 32*i)
			for high := range 2 {
				var terms []term
				for j := 0; j < 32; j += g.lanes {
					terms = append(terms, term{float(g.nibble(q[j/g.lanes], low, high > 0)), 64*i + 32*high + j})
				}
				g.emit(scale(2*i+high), min(2*i+high), terms...)
			}
		}
	}
}

func (g *gen) q5K() func() {
	g.scratch = g.AllocLocal(64)
	low, bit, float := g.all(15), g.all(16), g.levels(5, 0)
	return func() {
		scale, min := g.groups()
		var bits []reg.VecVirtual
		if g.lanes == 16 {
			bits = g.run32(16) // for the whole block, because there are enough registers
		}
		for i := range 4 {
			q := g.run32(48 + 32*i)
			for high := range 2 {
				var terms []term
				for j := 0; j < 32; j += g.lanes {
					var h reg.VecVirtual
					if bits != nil {
						h = bits[j/g.lanes]
					} else {
						h = g.bytes(16 + j)
					}
					h = g.move(h, 4-2*i-high)
					terms = append(terms, term{float(g.fifth(q[j/g.lanes], h, low, bit, high > 0)), 64*i + 32*high + j})
				}
				g.emit(scale(2*i+high), min(2*i+high), terms...)
			}
		}
	}
}

// q6K assembles numbers as bytes, many at once, and converts them to floats through the stack.
func (g *gen) q6K() func() {
	const scales = 64 // bytes on the stack before the numbers
	g.scratch = g.AllocLocal(scales + 128)
	low, upper, zero := g.all(0x0f0f0f0f), g.all(0x30303030), g.all(0x20202020)
	var counts reg.VecVirtual
	if g.lanes == 16 {
		// In the upper half of a vector the bits are two positions higher.
		counts = g.vec()
		y := g.YMM()
		x, r := g.XMM(), g.GP32()
		g.MOVL(U32(0x00020002), r)
		g.VMOVD(r, x)
		g.VPBROADCASTD(x, y)
		g.VPXORD(counts, counts, counts)
		g.VINSERTI64X4(U8(1), y, counts, counts)
	}
	// put stores (a | b) - 32 for two parts of bytes.
	put := func(a, b reg.VecVirtual, at int) {
		g.or(a, b, b)
		g.VPSUBB(zero, b, b)
		m := g.scratch.Offset(scales + at)
		if g.lanes == 16 {
			g.VMOVDQU32(b, m)
		} else {
			g.VMOVDQU(b, m)
		}
	}
	word := func(v reg.VecVirtual, n int) reg.VecVirtual {
		w := g.vec()
		switch {
		case n > 0:
			g.VPSLLW(U8(n), v, w)
		case n < 0:
			g.VPSRLW(U8(-n), v, w)
		default:
			return v
		}
		return w
	}
	return func() {
		d := g.half(208)
		for j := 0; j < 16; j += g.lanes {
			v := g.signed(Mem{Base: g.src, Disp: 192 + j})
			g.VMULPS(d, v, v)
			g.VMOVUPS(v, g.scratch.Offset(4*j))
		}
		for n := range 2 {
			ql, qh := Mem{Base: g.src, Disp: 64 * n}, Mem{Base: g.src, Disp: 128 + 32*n}
			if g.lanes == 16 {
				l, h := g.vec(), g.vec()
				g.VMOVDQU32(ql, l)
				g.VBROADCASTI64X4(qh, h)
				down := g.vec()
				g.VPSRLVW(counts, h, down)
				put(g.masked(l, low), g.masked(word(down, 4), upper), 0)
				put(g.masked(word(l, -4), low), g.masked(down, upper), 64)
			} else {
				h := g.vec()
				g.VMOVDQU(qh, h)
				for pair := range 2 {
					l := g.vec()
					g.VMOVDQU(ql.Offset(32*pair), l)
					put(g.masked(l, low), g.masked(word(h, 4-2*pair), upper), 32*pair)
					put(g.masked(word(l, -4), low), g.masked(word(h, -2*pair), upper), 64+32*pair)
				}
			}
			for i := range 8 {
				var terms []term
				for j := 16 * i; j < 16*i+16; j += g.lanes {
					terms = append(terms, term{g.signed(g.scratch.Offset(scales + j)), 128*n + j})
				}
				g.emit(g.scale(8*n+i), nil, terms...)
			}
		}
	}
}
