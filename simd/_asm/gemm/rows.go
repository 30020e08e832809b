package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rowAddresses returns addresses of n rows that are stride bytes apart, from first on. Some rows
// have their own pointer, which the function advance moves; the others are at a multiple of the
// stride from such a pointer that an addressing mode can express.
func (g *gen) rowAddresses(first, stride reg.GPVirtual, n int) (at func(i, disp int) Mem, advance func(op Op)) {
	bases := rowBases(n)
	rows := []reg.GPVirtual{first}
	for i, b := range bases[1:] {
		p, from := g.GP64(), rows[i]
		for d := b - bases[i]; d > 0; from = p {
			scale := 8
			for scale > d {
				scale /= 2
			}
			g.LEAQ(Mem{Base: from, Index: stride, Scale: uint8(scale)}, p)
			d -= scale
		}
		rows = append(rows, p)
	}
	at = func(i, disp int) Mem {
		for r, b := range bases {
			switch d := i - b; d {
			case 0:
				return Mem{Base: rows[r], Disp: disp}
			case 1, 2, 4, 8:
				return Mem{Base: rows[r], Disp: disp, Index: stride, Scale: uint8(d)}
			}
		}
		panic("a row out of reach")
	}
	advance = func(op Op) {
		for _, p := range rows {
			g.ADDQ(op, p)
		}
	}
	return at, advance
}

// rowBases returns the smallest set of rows, 0 first, such that each of the n rows is 0, 1, 2, 4 or
// 8 rows after one of them.
func rowBases(n int) []int {
	var best []int
	for set := uint(1); set < 1<<n; set += 2 {
		var bases []int
		reached := uint(0)
		for i := 0; i < n; i++ {
			if set>>i&1 != 0 {
				bases = append(bases, i)
				reached |= 1<<i | 1<<(i+1) | 1<<(i+2) | 1<<(i+4) | 1<<(i+8)
			}
		}
		if all := uint(1)<<n - 1; reached&all == all && (best == nil || len(bases) < len(best)) {
			best = bases
		}
	}
	return best
}

// mostRows is the largest mr of fewRows.
const mostRows = 4

// fewRows writes the kernel that adds the product of mr rows to C, for an mr too small for tiles:
// it adds scaled rows of B to the rows of C. It reads B once, several rows at a time, because this
// is the fastest order of memory accesses.
func (g *gen) fewRows(mr int) {
	g.function(fmt.Sprintf("gemmRows%d%s", mr, g.upper()),
		"func(a, b, c *float32, as, bs, cs, k, n int)",
		fmt.Sprintf("gemmRows%d%s is a rowsFunc of %d rows.", mr, g.upper(), mr))
	kMost, wide := g.rowsShape(mr)
	next := g.label("next")
	for _, kk := range []int{kMost, 1} {
		chunk := g.label("chunk")
		g.Label(chunk)
		g.CMPQ(g.slot("k"), I32(kk))
		g.JLT(LabelRef(next))
		g.rowsChunk(mr, kk, wide)
		g.ADDQ(I32(4*kk), g.slot("a"))
		step := g.GP64()
		g.Load(g.Param("bs"), step)
		g.IMUL3Q(I32(kk), step, step)
		g.ADDQ(step, g.slot("b"))
		g.SUBQ(I32(kk), g.slot("k"))
		g.JMP(LabelRef(chunk))
		g.Label(next)
		next = g.label("next")
	}
	g.VZEROUPPER()
	g.RET()
}

// rowsChunk writes the loop along kk rows of B.
func (g *gen) rowsChunk(mr, kk, wide int) {
	c := &rowsPart{gen: g, mr: mr, kk: kk}
	a, as := g.GP64(), g.GP64()
	g.Load(g.Param("a"), a)
	g.Load(g.Param("as"), as)
	for i := 0; i < mr; i++ {
		c.av = append(c.av, nil)
		for p := 0; p < kk; p++ {
			v := c.fresh()
			g.VBROADCASTSS(Mem{Base: a, Disp: 4 * p}, v)
			c.av[i] = append(c.av[i], v)
		}
		if i < mr-1 {
			g.ADDQ(as, a)
		}
	}
	c.columns(wide)
}

// rowsPart holds the values that the parts of rowsChunk share.
type rowsPart struct {
	*gen
	mr, kk   int
	used     int // number of registers in use
	av       [][]reg.Register
	bAt, cAt func(i, disp int) Mem
}

func (c *rowsPart) fresh() reg.Register {
	c.used++
	return c.vector(c.used - 1)
}

// columns writes loops along the columns: over wide vectors at a time, then over single vectors,
// then a masked tail.
func (c *rowsPart) columns(wide int) {
	b, bs, to, cs, n := c.GP64(), c.GP64(), c.GP64(), c.GP64(), c.GP64()
	c.Load(c.Param("b"), b)
	c.Load(c.Param("bs"), bs)
	c.Load(c.Param("c"), to)
	c.Load(c.Param("cs"), cs)
	c.Load(c.Param("n"), n)
	bAt, bStep := c.rowAddresses(b, bs, c.kk)
	cAt, cStep := c.rowAddresses(to, cs, c.mr)
	c.bAt, c.cAt = bAt, cAt
	loop := func(wide int) {
		top, end := c.label("columns"), c.label("end")
		c.SUBQ(I32(wide*c.lanes()), n)
		c.JLT(LabelRef(end))
		c.Label(top)
		c.add(wide, nil)
		bStep(I32(wide * 4 * c.lanes()))
		cStep(I32(wide * 4 * c.lanes()))
		c.SUBQ(I32(wide*c.lanes()), n)
		c.JGE(LabelRef(top))
		c.Label(end)
		c.ADDQ(I32(wide*c.lanes()), n)
	}
	loop(wide)
	if wide > 1 {
		loop(1)
	}
	done := c.label("done")
	c.TESTQ(n, n)
	c.JEQ(LabelRef(done))
	c.add(1, c.tailMask(c.gen, n, c.registers()-1))
	c.Label(done)
}

// add adds the products to wide vectors of each row of C.
func (c *rowsPart) add(wide int, mask reg.Register) {
	mark, vecBytes := c.used, 4*c.lanes()
	acc := make([][]reg.Register, c.mr)
	for i := range acc {
		for v := 0; v < wide; v++ {
			r := c.fresh()
			acc[i] = append(acc[i], r)
			if mask != nil {
				c.loadMasked(c.gen, c.cAt(i, v*vecBytes), mask, r)
			} else {
				c.VMOVUPS(c.cAt(i, v*vecBytes), r)
			}
		}
	}
	bv := c.fresh()
	for p := 0; p < c.kk; p++ {
		for v := 0; v < wide; v++ {
			m := c.bAt(p, v*vecBytes)
			switch {
			case mask != nil:
				c.loadMasked(c.gen, m, mask, bv)
			case c.mr == 1:
				c.VFMADD231PS(m, c.av[0][p], acc[0][v])
				continue
			default:
				c.VMOVUPS(m, bv)
			}
			for i := range acc {
				c.VFMADD231PS(bv, c.av[i][p], acc[i][v])
			}
		}
	}
	for i := range acc {
		for v := range acc[i] {
			if mask != nil {
				c.storeMasked(c.gen, acc[i][v], mask, c.cAt(i, v*vecBytes))
			} else {
				c.VMOVUPS(acc[i][v], c.cAt(i, v*vecBytes))
			}
		}
	}
	c.used = mark
}
