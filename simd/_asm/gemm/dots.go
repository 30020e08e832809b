package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// dots writes the kernel that multiplies many rows by q others, all contiguous along k, for a q too
// small for panels. Vectors run along k, and every element of the result has an accumulator whose
// lanes are added at the end.
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

// dotsGroup writes the products of rows rows and q others.
func (g *gen) dotsGroup(rows, q int) {
	d := &dotsPart{gen: g, q: q, acc: make([][]reg.Register, rows)}
	for r := range d.acc {
		for range q {
			v := d.fresh()
			g.zero(g, v)
			d.acc[r] = append(d.acc[r], v)
		}
	}
	d.multiply()
	d.store()
}

// dotsPart holds the values that the parts of dotsGroup share.
type dotsPart struct {
	*gen
	q    int
	used int // number of registers in use
	acc  [][]reg.Register
	sAt  func(i, disp int) Mem
	p    reg.GPVirtual
	pv   reg.Register
	sv   []reg.Register
}

func (d *dotsPart) fresh() reg.Register {
	d.used++
	return d.vector(d.used - 1)
}

// multiply adds the products along k, with a masked tail.
func (d *dotsPart) multiply() {
	s, p, ss, k := d.GP64(), d.GP64(), d.GP64(), d.GP64()
	d.Load(d.Param("s"), s)
	d.Load(d.Param("p"), p)
	d.Load(d.Param("ss"), ss)
	d.Load(d.Param("k"), k)
	at, step := d.rowAddresses(s, ss, len(d.acc))
	d.sAt, d.p = at, p

	d.pv = d.fresh()
	d.sv = append(d.sv, d.fresh())
	for i := 1; d.q > 1 && i < len(d.acc); i++ {
		d.sv = append(d.sv, d.fresh())
	}
	loop, rest, sum := d.label("loop"), d.label("rest"), d.label("sum")
	d.SUBQ(I32(d.lanes()), k)
	d.JLT(LabelRef(rest))
	d.Label(loop)
	d.vectorOf(nil)
	step(I32(4 * d.lanes()))
	d.ADDQ(I32(d.q*4*d.lanes()), p)
	d.SUBQ(I32(d.lanes()), k)
	d.JGE(LabelRef(loop))
	d.Label(rest)
	d.ADDQ(I32(d.lanes()), k)
	d.JEQ(LabelRef(sum))
	d.vectorOf(d.tailMask(d.gen, k, d.registers()-1))
	d.Label(sum)
}

// vectorOf adds the products of a vector along k.
func (d *dotsPart) vectorOf(mask reg.Register) {
	if d.q == 1 {
		d.VMOVUPS(Mem{Base: d.p}, d.pv)
		for r := range d.acc {
			if mask == nil {
				d.VFMADD231PS(d.sAt(r, 0), d.pv, d.acc[r][0])
			} else {
				d.loadMasked(d.gen, d.sAt(r, 0), mask, d.sv[0])
				d.VFMADD231PS(d.sv[0], d.pv, d.acc[r][0])
			}
		}
		return
	}
	for r := range d.acc {
		if mask == nil {
			d.VMOVUPS(d.sAt(r, 0), d.sv[r])
		} else {
			d.loadMasked(d.gen, d.sAt(r, 0), mask, d.sv[r])
		}
	}
	for i := 0; i < d.q; i++ {
		d.VMOVUPS(Mem{Base: d.p, Disp: i * 4 * d.lanes()}, d.pv)
		for r := range d.acc {
			d.VFMADD231PS(d.pv, d.sv[r], d.acc[r][i])
		}
	}
}

// store adds the sums to C.
func (d *dotsPart) store() {
	c, cr, cq, at := d.GP64(), d.GP64(), d.GP64(), d.GP64()
	d.Load(d.Param("c"), c)
	d.Load(d.Param("cr"), cr)
	d.Load(d.Param("cq"), cq)
	for r := range d.acc {
		d.MOVQ(c, at)
		for i, v := range d.acc[r] {
			x := d.sumLanes(v)
			d.VADDSS(Mem{Base: at}, x, x)
			d.VMOVSS(x, Mem{Base: at})
			if i < d.q-1 {
				d.ADDQ(cq, at)
			}
		}
		if r < len(d.acc)-1 {
			d.ADDQ(cr, c)
		}
	}
}

// sumLanes returns the lowest part of v, whose first lane is the sum of all of them.
func (d *dotsPart) sumLanes(v reg.Register) (x reg.Register) {
	part := func(v reg.Register, s reg.Spec) reg.Register {
		return reg.Vector.Lookup(reg.Index(v.(reg.Physical).PhysicalIndex()), s)
	}
	y, x := part(v, reg.S256), part(v, reg.S128)
	ty, tx := part(d.pv, reg.S256), part(d.pv, reg.S128)
	if d.lanes() == 16 {
		d.VEXTRACTF64X4(U8(1), v, ty)
		d.VADDPS(ty, y, y)
		d.VEXTRACTF32X4(U8(1), y, tx)
	} else {
		d.VEXTRACTF128(U8(1), y, tx)
	}
	d.VADDPS(tx, x, x)
	d.VPERMILPS(U8(0x0e), x, tx)
	d.VADDPS(tx, x, x)
	d.VMOVSHDUP(x, tx)
	d.VADDSS(tx, x, x)
	return x
}
