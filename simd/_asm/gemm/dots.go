package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// dots writes the kernel that multiplies many rows by q others, all contiguous
// along k, for a q too small for panels. Vectors run along k and every element
// of the result has an accumulator that is summed up in the end.
func (g *gen) dots(q int) {
	g.function(fmt.Sprintf("gemmDots%d%s", q, g.upper()),
		"func(s, p, c *float32, ss, cr, cq, k, rows int)",
		fmt.Sprintf("gemmDots%d%s is a dotsFunc of %d.", q, g.upper(), q))
	next := g.label("next")
	for _, rows := range []int{g.dotsRows(q), 1} {
		group := g.label("group")
		g.Label(group)
		g.CMPQ(g.slot("rows"), I32(rows))
		g.JLT(LabelRef(next))
		g.dotsGroup(rows, q)
		for _, step := range [][2]string{{"s", "ss"}, {"c", "cr"}} {
			by := g.GP64()
			g.Load(g.Param(step[1]), by)
			g.IMUL3Q(I32(rows), by, by)
			g.ADDQ(by, g.slot(step[0]))
		}
		g.SUBQ(I32(rows), g.slot("rows"))
		g.JMP(LabelRef(group))
		g.Label(next)
		next = g.label("next")
	}
	g.VZEROUPPER()
	g.RET()
}

func (g *gen) dotsGroup(rows, q int) {
	vecBytes := 4 * g.lanes()
	acc := make([][]reg.Register, rows)
	used := 0
	fresh := func() reg.Register {
		used++
		return g.vector(used - 1)
	}
	for r := range acc {
		for range q {
			v := fresh()
			g.zero(g, v)
			acc[r] = append(acc[r], v)
		}
	}
	s, p, ss, k := g.GP64(), g.GP64(), g.GP64(), g.GP64()
	g.Load(g.Param("s"), s)
	g.Load(g.Param("p"), p)
	g.Load(g.Param("ss"), ss)
	g.Load(g.Param("k"), k)
	sAt, sStep := g.rowAddresses(s, ss, rows)

	pv := fresh()
	var sv []reg.Register
	if q > 1 {
		for range rows {
			sv = append(sv, fresh())
		}
	} else {
		sv = append(sv, fresh())
	}
	body := func(mask reg.Register) {
		if q == 1 {
			g.VMOVUPS(Mem{Base: p}, pv)
			for r := range acc {
				if mask == nil {
					g.VFMADD231PS(sAt(r, 0), pv, acc[r][0])
				} else {
					g.loadMasked(g, sAt(r, 0), mask, sv[0])
					g.VFMADD231PS(sv[0], pv, acc[r][0])
				}
			}
			return
		}
		for r := range acc {
			if mask == nil {
				g.VMOVUPS(sAt(r, 0), sv[r])
			} else {
				g.loadMasked(g, sAt(r, 0), mask, sv[r])
			}
		}
		for i := 0; i < q; i++ {
			g.VMOVUPS(Mem{Base: p, Disp: i * vecBytes}, pv)
			for r := range acc {
				g.VFMADD231PS(pv, sv[r], acc[r][i])
			}
		}
	}
	loop, rest, sum := g.label("loop"), g.label("rest"), g.label("sum")
	g.SUBQ(I32(g.lanes()), k)
	g.JLT(LabelRef(rest))
	g.Label(loop)
	body(nil)
	sStep(I32(vecBytes))
	g.ADDQ(I32(q*vecBytes), p)
	g.SUBQ(I32(g.lanes()), k)
	g.JGE(LabelRef(loop))
	g.Label(rest)
	g.ADDQ(I32(g.lanes()), k)
	g.JEQ(LabelRef(sum))
	body(g.tailMask(g, k, g.registers()-1))

	g.Label(sum)
	c, cr, cq, at := g.GP64(), g.GP64(), g.GP64(), g.GP64()
	g.Load(g.Param("c"), c)
	g.Load(g.Param("cr"), cr)
	g.Load(g.Param("cq"), cq)
	half := func(v reg.Register, s reg.Spec) reg.Register {
		return reg.Vector.Lookup(reg.Index(v.(reg.Physical).PhysicalIndex()), s)
	}
	for r := range acc {
		g.MOVQ(c, at)
		for i, v := range acc[r] {
			y, x := half(v, reg.S256), half(v, reg.S128)
			ty, tx := half(pv, reg.S256), half(pv, reg.S128)
			if g.lanes() == 16 {
				g.VEXTRACTF64X4(U8(1), v, ty)
				g.VADDPS(ty, y, y)
				g.VEXTRACTF32X4(U8(1), y, tx)
			} else {
				g.VEXTRACTF128(U8(1), y, tx)
			}
			g.VADDPS(tx, x, x)
			g.VPERMILPS(U8(0x0e), x, tx)
			g.VADDPS(tx, x, x)
			g.VMOVSHDUP(x, tx)
			g.VADDSS(tx, x, x)
			g.VADDSS(Mem{Base: at}, x, x)
			g.VMOVSS(x, Mem{Base: at})
			if i < q-1 {
				g.ADDQ(cq, at)
			}
		}
		if r < len(acc)-1 {
			g.ADDQ(cr, c)
		}
	}
}
