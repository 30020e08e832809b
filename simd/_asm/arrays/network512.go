package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// network512 writes the kernel that sorts up to 16*n keys in n vectors like network, more than half as many if n > 4. It reads
// only the keys that exist. The greatest key stands for the others.
func (g *gen) network512(n int) {
	name := fmt.Sprintf("sort%dAVX512", lanes512*n)
	least := lanes512*n/2 + 1
	if n == 4 {
		least = 1
	}
	g.function(name, "func(dst, src *uint32, n int)", fmt.Sprintf("%s sets dst to the n sorted keys of src, %d to %d.", name, least, lanes512*n))
	dst, src, count := g.Load(g.Param("dst"), reg.RAX), g.Load(g.Param("src"), reg.RCX), g.Load(g.Param("n"), reg.RDX)
	l := &list{g: g, wide: true, upper: map[int]reg.Register{}}
	for i, k := range []reg.Register{reg.K1, reg.K2, reg.K3, reg.K4} {
		m := l.upperLanes(1 << i)
		l.upper[m] = k
		g.MOVL(U32(uint32(m)), reg.EBX)
		g.KMOVW(reg.EBX, k)
	}
	// whole reports whether all keys of vector i exist. Otherwise it sets k to those that exist.
	whole := func(i int, k reg.Register) bool {
		if n > 4 && i < n/2 {
			return true
		}
		g.XORL(reg.ESI, reg.ESI)
		g.MOVQ(count, reg.RDI)
		g.SUBQ(I32(lanes512*i), reg.RDI)
		g.CMOVQLT(reg.RSI, reg.RDI)
		g.MOVL(U32(1<<lanes512-1), reg.EBX)
		g.BZHIL(reg.EDI, reg.EBX, reg.EBX)
		g.KMOVW(reg.EBX, k)
		return false
	}
	var v []value
	for i := range n {
		v = append(v, l.add(func(dst reg.VecPhysical, _ []reg.VecPhysical) {
			m := Mem{Base: src, Disp: 4 * lanes512 * i}
			if whole(i, reg.K5) {
				g.VMOVDQU32(m, dst)
				return
			}
			g.VPTERNLOGD(U8(0xff), dst, dst, dst)
			g.VMOVDQU32(m, reg.K5, dst)
		}))
	}
	l.columns(v)
	for width := 1; width < lanes512; width *= 2 {
		l.join(v, width)
	}
	for i, w := range l.turn512(v) {
		l.code = append(l.code, instruction{[]value{w}, func(_ reg.VecPhysical, from []reg.VecPhysical) {
			m := Mem{Base: dst, Disp: 4 * lanes512 * i}
			if whole(i, reg.K5) {
				g.VMOVDQU32(from[0], m)
			} else {
				g.VMOVDQU32(from[0], reg.K5, m)
			}
		}, -1})
	}
	l.emit()
	g.ret()
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
