package main

import (
	"fmt"
	"math/bits"
	"slices"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// network512 writes the kernel that sorts least to 16*n keys in n vectors like network. It reads only the keys that exist. The greatest
// key stands for the others.
func (g *gen) network512(n, least int) {
	name := fmt.Sprintf("sort%dAVX512", lanes512*n)
	g.function(name, "func(dst, src *uint32, n int)", fmt.Sprintf("%s sets dst to the n sorted keys of src, %d to %d.", name, least, lanes512*n))
	dst, src, count := g.Load(g.Param("dst"), reg.RAX), g.Load(g.Param("src"), reg.RCX), g.Load(g.Param("n"), reg.RDX)
	l := g.wideList()
	part := reg.K5
	// whole reports whether all keys of vector i exist. Otherwise it sets part to those that exist. The vectors are those from 0 on, in order.
	whole := func(i int) bool {
		if i < (least-1)/(4*lanes512)*4 {
			return true
		}
		if i%4 == 0 {
			g.XORL(reg.ESI, reg.ESI)
			g.MOVQ(count, reg.RDI)
			g.SUBQ(I32(lanes512*i), reg.RDI)
			g.CMOVQLT(reg.RSI, reg.RDI)
			g.MOVQ(I32(-1), reg.RBX)
			g.BZHIQ(reg.RDI, reg.RBX, reg.RBX) // the keys of four vectors
		} else {
			g.SHRQ(U8(lanes512), reg.RBX)
		}
		g.KMOVW(reg.EBX, part)
		return false
	}
	var v []value
	for i := range n {
		v = append(v, l.add(func(dst reg.VecPhysical, _ []reg.VecPhysical) {
			m := Mem{Base: src, Disp: 4 * lanes512 * i}
			if whole(i) {
				g.VMOVDQU32(m, dst)
				return
			}
			g.VPTERNLOGD(U8(0xff), dst, dst, dst)
			g.VMOVDQU32(m, part, dst)
		}))
	}
	all := append(slices.Clone(v), slices.Repeat([]value{greatest}, 1<<bits.Len(uint(n-1))-n)...)
	l.columns(all)
	v = all[:n]
	for width := 1; width < lanes512; width *= 2 {
		l.join(v, width)
	}
	for i, w := range l.turn512(v) {
		l.code = append(l.code, instruction{from: []value{w}, do: func(_ reg.VecPhysical, from []reg.VecPhysical) {
			m := Mem{Base: dst, Disp: 4 * lanes512 * i}
			if whole(i) {
				g.VMOVDQU32(from[0], m)
			} else {
				g.VMOVDQU32(from[0], part, m)
			}
		}, dst: -1})
	}
	l.emit()
	g.ret()
}

// pivot512 writes the kernel that sorts a sample of keys, two vectors.
func (g *gen) pivot512() {
	g.function("sortSampleAVX512", "func(dst, src *uint32, step int)",
		"sortSampleAVX512 sorts 32 keys of src: those at step, 3*step and so on. Key i comes to the elements of dst at i%2*16+i/2.")
	dst, src := g.Load(g.Param("dst"), reg.RAX), g.Load(g.Param("src"), reg.RCX)
	g.Load(g.Param("step"), reg.RDX)
	l := g.wideList()
	g.MOVL(reg.EDX, reg.ESI)
	g.SHLL(U8(lanes512/4+1), reg.ESI) // 32*step
	var v []value
	for i := range 2 {
		v = append(v, l.add(func(to reg.VecPhysical, _ []reg.VecPhysical) {
			at := l.reg(31 - i)
			g.VPBROADCASTD(reg.EDX, at)
			g.VPMULLD(g.odds(), at, at)
			if i > 0 {
				g.LEAQ(Mem{Base: src, Index: reg.RSI, Scale: 4}, src)
			}
			g.KXNORW(reg.K5, reg.K5, reg.K5)
			g.VPXORD(to, to, to)
			g.VPGATHERDD(Mem{Base: src, Index: at, Scale: 4}, reg.K5, to)
		}))
	}
	l.columns(v)
	for width := 1; width < lanes512; width *= 2 {
		l.join(v, width)
	}
	for i, w := range v {
		l.store(w, Mem{Base: dst, Disp: 4 * lanes512 * i})
	}
	l.emit()
	g.ret()
}

// odds returns a constant with the numbers 1, 3 and so on.
func (g *gen) odds() Mem {
	if g.oddNumbers == (Mem{}) {
		var words []uint64
		for i := 0; i < lanes512; i += 2 {
			words = append(words, uint64(2*i+1)|uint64(2*i+3)<<32)
		}
		g.oddNumbers = g.global("oddNumbers", words...)
	}
	return g.oddNumbers
}

// wideList returns an empty program over vectors of 16 lanes.
func (g *gen) wideList() *list {
	l := &list{g: g, wide: true, upper: map[int]reg.Register{}, flip: map[int]value{}}
	for i, k := range []reg.Register{reg.K1, reg.K2, reg.K3, reg.K4} {
		m := l.upperLanes(1 << i)
		l.upper[m] = k
		g.MOVL(U32(uint32(m)), reg.EBX)
		g.KMOVW(reg.EBX, k)
	}
	return l
}

// exclusive returns a^b^c: of two numbers and their minimum this is the maximum. Only one of the two ports for vectors computes maximums.
func (l *list) exclusive(a, b, c value) value {
	return l.add(func(dst reg.VecPhysical, from []reg.VecPhysical) {
		i := max(slices.Index(from, dst), 0)
		if from[i] != dst {
			l.g.VMOVDQA32(from[i], dst)
		}
		l.g.VPTERNLOGD(U8(0x96), from[(i+1)%3], from[(i+2)%3], dst)
	}, a, b, c)
}

// most returns the maximum of a and b in the given lanes, and the minimum in the others.
func (l *list) most(lanes int, a, b value) value {
	v := l.add(func(dst reg.VecPhysical, from []reg.VecPhysical) {
		l.g.VPMINUD(from[1], from[0], dst)
		l.g.VPTERNLOGD(U8(0x96), from[1], from[0], l.upper[lanes], dst)
	}, a, b)
	l.code[len(l.code)-1].apart = true
	return v
}

// flipped exchanges each lane i with lane i^x by one permutation.
func (l *list) flipped(a value, x int) value {
	index, ok := l.flip[x]
	if !ok {
		index = l.load(l.g.flips(x))
		l.flip[x] = index
	}
	return l.add(func(dst reg.VecPhysical, from []reg.VecPhysical) { l.g.VPERMD(from[0], from[1], dst) }, a, index)
}

// flips returns a constant with the lane numbers i^x.
func (g *gen) flips(x int) Mem {
	if g.lanesFlipped == nil {
		g.lanesFlipped = map[int]Mem{}
	}
	if _, ok := g.lanesFlipped[x]; !ok {
		var words []uint64
		for i := 0; i < lanes512; i += 2 {
			words = append(words, uint64(i^x)|uint64((i+1)^x)<<32)
		}
		g.lanesFlipped[x] = g.global(fmt.Sprintf("lanesFlipped%d", x), words...)
	}
	return g.lanesFlipped[x]
}

// turn512 is turn for vectors of 16 lanes, at least four.
func (l *list) turn512(v []value) []value {
	n := len(v) / 4
	columns := make([]value, 4*n) // columns i, i+4, i+8 and i+12 of each four vectors
	for k := range n {
		r := v[4*k:]
		for high := range 2 {
			a, b := l.unpack(false, high > 0, r[0], r[1]), l.unpack(false, high > 0, r[2], r[3])
			columns[(2*high)*n+k] = l.unpack(true, false, a, b)
			columns[(2*high+1)*n+k] = l.unpack(true, true, a, b)
		}
	}
	out := make([]value, len(v))
	for i := 0; i < len(columns); i += 4 {
		c := columns[i:]
		for high, order := range []int{0x44, 0xee} {
			a, b := l.quarters(order, c[0], c[1]), l.quarters(order, c[2], c[3]) // quarters 2*high and 2*high+1
			out[2*high*n+i/4] = l.quarters(0x88, a, b)
			out[(2*high+1)*n+i/4] = l.quarters(0xdd, a, b)
		}
	}
	return out
}
