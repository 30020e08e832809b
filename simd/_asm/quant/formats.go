package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/rayo-go/rayo/gguf/block"
)

// gen is a build context for vectors of so many lanes.
type gen struct {
	*build.Context
	name  string
	lanes int

	src    reg.GPVirtual // the block
	scales Mem           // on the stack: scales of groups, then minima

	// sink takes a vector of the numbers of a block from element i on.
	sink func(v reg.VecVirtual, i int)
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

// all returns a vector of one number.
func (g *gen) all(n uint32) reg.VecVirtual {
	r, x, v := g.GP32(), g.XMM(), g.vec()
	g.MOVL(U32(n), r)
	g.VMOVD(r, x)
	g.VPBROADCASTD(x, v)
	return v
}

// bytes loads as many bytes of the block as there are lanes as integers.
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

// move shifts to the left, or for a negative n to the right, into a new vector.
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

// masked returns a part of the bits of v, in a new vector.
func (g *gen) masked(v, mask reg.VecVirtual) reg.VecVirtual {
	w := g.vec()
	g.and(v, mask, w)
	return w
}

// number makes q, integers, into (q-zero)·scale-min and hands it on. zero and
// min may be nil. Products and differences are rounded one by one, as package
// block does it.
func (g *gen) number(q, zero, scale, min reg.Register, at int) {
	v := q.(reg.VecVirtual)
	if zero != nil {
		g.VPSUBD(zero, v, v)
	}
	g.VCVTDQ2PS(v, v)
	g.VMULPS(scale, v, v)
	if min != nil {
		g.VSUBPS(min, v, v)
	}
	g.sink(v, at)
}

// counts is a table of 0, 1, 2 …, 15.
func (g *gen) counts() {
	g.StaticGlobal("quantCounts")
	g.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 16 {
		g.AddDatum(4*i, U32(i))
	}
}

// setup makes what all blocks use; the function that it returns writes one.
func (g *gen) setup(f block.Format) func() {
	switch f {
	case block.Q4_0:
		return g.q4(g.all(15), g.all(8))
	case block.Q5_0:
		return g.q5(g.all(15), g.all(16))
	case block.Q8_0:
		return g.q8
	case block.Q4_K:
		g.scales = g.AllocLocal(64)
		return g.q4K(g.all(15))
	case block.Q5_K:
		g.scales = g.AllocLocal(64)
		return g.q5K(g.all(15), g.all(16))
	case block.Q6_K:
		g.scales = g.AllocLocal(64)
		return g.q6K(g.all(15), g.all(0x30), g.all(32))
	}
	panic(fmt.Sprintf("no code for %v", f))
}

func (g *gen) q4(low, zero reg.VecVirtual) func() {
	return func() {
		d := g.half(0)
		for j := 0; j < 16; j += g.lanes {
			q := g.bytes(2 + j)
			g.number(g.masked(q, low), zero, d, nil, j)
			g.number(g.move(q, -4), zero, d, nil, j+16)
		}
	}
}

func (g *gen) q5(low, fifth reg.VecVirtual) func() {
	return func() {
		d, bits := g.half(0), g.vec()
		g.VPBROADCASTD(Mem{Base: g.src, Disp: 2}, bits)
		// Bit j and bit 16+j as bit 4 of lane j.
		first, second := g.move(bits, 4), g.move(bits, -12)
		for j := 0; j < 16; j += g.lanes {
			q, shift := g.bytes(6+j), g.vec()
			g.loadCounts(j, shift)
			for i, part := range []struct{ q, bits reg.VecVirtual }{{g.masked(q, low), first}, {g.move(q, -4), second}} {
				h := g.vec()
				g.VPSRLVD(shift, part.bits, h)
				g.and(h, fifth, h)
				g.or(h, part.q, h)
				g.number(h, fifth, d, nil, j+16*i) // 16 is the zero too
			}
		}
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

func (g *gen) q8() {
	d := g.half(0)
	for j := 0; j < 32; j += g.lanes {
		q := g.vec()
		g.VPMOVSXBD(Mem{Base: g.src, Disp: 2 + j}, q)
		g.number(q, nil, d, nil, j)
	}
}

// groups puts the scales of the eight groups, and behind them the minima, on
// the stack: the packing is that of groups in package block.
func (g *gen) groups() {
	word := func(at int) reg.GPVirtual {
		r := g.GP32()
		g.MOVL(Mem{Base: g.src, Disp: at}, r)
		return r
	}
	low := word(12) // the low halves of the last four of each
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
		x, h, v := g.XMM(), g.XMM(), g.YMM()
		g.VMOVD(w, x)
		g.VPINSRD(U8(1), rest, x, x)
		g.VPMOVZXBD(x, v)
		g.VCVTDQ2PS(v, v)
		d := g.YMM()
		g.VPBROADCASTW(Mem{Base: g.src, Disp: 2 * i}, h)
		g.VCVTPH2PS(h, d)
		g.VMULPS(d, v, v)
		g.VMOVUPS(v, g.scales.Offset(32*i))
	}
}

// scale broadcasts a scale or minimum from the stack.
func (g *gen) scale(i int) reg.VecVirtual {
	v := g.vec()
	g.VBROADCASTSS(g.scales.Offset(4*i), v)
	return v
}

func (g *gen) q4K(low reg.VecVirtual) func() {
	return func() {
		g.groups()
		for i := range 4 {
			s0, m0, s1, m1 := g.scale(2*i), g.scale(8+2*i), g.scale(2*i+1), g.scale(8+2*i+1)
			for j := 0; j < 32; j += g.lanes {
				q := g.bytes(16 + 32*i + j)
				g.number(g.masked(q, low), nil, s0, m0, 64*i+j)
				g.number(g.move(q, -4), nil, s1, m1, 64*i+32+j)
			}
		}
	}
}

func (g *gen) q5K(low, fifth reg.VecVirtual) func() {
	return func() {
		g.groups()
		for i := range 4 {
			s0, m0, s1, m1 := g.scale(2*i), g.scale(8+2*i), g.scale(2*i+1), g.scale(8+2*i+1)
			for j := 0; j < 32; j += g.lanes {
				q, h := g.bytes(48+32*i+j), g.bytes(16+j)
				first := g.masked(g.move(h, 4-2*i), fifth)
				g.or(g.masked(q, low), first, first)
				g.number(first, nil, s0, m0, 64*i+j)
				second := g.masked(g.move(h, 3-2*i), fifth)
				g.or(g.move(q, -4), second, second)
				g.number(second, nil, s1, m1, 64*i+32+j)
			}
		}
	}
}

func (g *gen) q6K(low, upper, zero reg.VecVirtual) func() {
	return func() {
		d := g.half(208)
		for j := 0; j < 16; j += g.lanes {
			v := g.vec()
			g.VPMOVSXBD(Mem{Base: g.src, Disp: 192 + j}, v)
			g.VCVTDQ2PS(v, v)
			g.VMULPS(d, v, v)
			g.VMOVUPS(v, g.scales.Offset(4*j))
		}
		for n := range 2 {
			for half := range 2 {
				var s [4]reg.VecVirtual
				for k := range s {
					s[k] = g.scale(8*n + 2*k + half)
				}
				for j := 16 * half; j < 16*half+16; j += g.lanes {
					h := g.bytes(128 + 32*n + j)
					for pair := range 2 {
						q := g.bytes(64*n + 32*pair + j)
						first := g.masked(g.move(h, 4-2*pair), upper)
						g.or(g.masked(q, low), first, first)
						g.number(first, zero, s[pair], nil, 128*n+32*pair+j)
						second := g.masked(g.move(h, -2*pair), upper)
						g.or(g.move(q, -4), second, second)
						g.number(second, zero, s[2+pair], nil, 128*n+64+32*pair+j)
					}
				}
			}
		}
	}
}
