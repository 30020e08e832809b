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

// rowBases returns the rows, as few as possible and 0 first, from which all n
// are 0, 1, 2, 4 or 8 rows away.
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

// mostRows is the most rows that fewRows is written for.
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

// rowsChunk writes the walk along kk rows of B.
func (g *gen) rowsChunk(mr, kk, wide int) {
	vecBytes := 4 * g.lanes()
	a, as := g.GP64(), g.GP64()
	g.Load(g.Param("a"), a)
	g.Load(g.Param("as"), as)
	var av [][]reg.Register
	used := 0
	fresh := func() reg.Register {
		used++
		return g.vector(used - 1)
	}
	for i := 0; i < mr; i++ {
		av = append(av, nil)
		for p := 0; p < kk; p++ {
			v := fresh()
			g.VBROADCASTSS(Mem{Base: a, Disp: 4 * p}, v)
			av[i] = append(av[i], v)
		}
		if i < mr-1 {
			g.ADDQ(as, a)
		}
	}

	b, bs, c, cs, n := g.GP64(), g.GP64(), g.GP64(), g.GP64(), g.GP64()
	g.Load(g.Param("b"), b)
	g.Load(g.Param("bs"), bs)
	g.Load(g.Param("c"), c)
	g.Load(g.Param("cs"), cs)
	g.Load(g.Param("n"), n)
	bAt, bStep := g.rowAddresses(b, bs, kk)
	cAt, cStep := g.rowAddresses(c, cs, mr)

	mark := used
	body := func(wide int, mask reg.Register) {
		used = mark
		acc := make([][]reg.Register, mr)
		for i := range acc {
			for v := 0; v < wide; v++ {
				r := fresh()
				acc[i] = append(acc[i], r)
				if mask != nil {
					g.loadMasked(g, cAt(i, v*vecBytes), mask, r)
				} else {
					g.VMOVUPS(cAt(i, v*vecBytes), r)
				}
			}
		}
		bv := fresh()
		for p := 0; p < kk; p++ {
			for v := 0; v < wide; v++ {
				m := bAt(p, v*vecBytes)
				switch {
				case mask != nil:
					g.loadMasked(g, m, mask, bv)
				case mr == 1:
					g.VFMADD231PS(m, av[0][p], acc[0][v])
					continue
				default:
					g.VMOVUPS(m, bv)
				}
				for i := range acc {
					g.VFMADD231PS(bv, av[i][p], acc[i][v])
				}
			}
		}
		for i := range acc {
			for v := range acc[i] {
				if mask != nil {
					g.storeMasked(g, acc[i][v], mask, cAt(i, v*vecBytes))
				} else {
					g.VMOVUPS(acc[i][v], cAt(i, v*vecBytes))
				}
			}
		}
	}
	loop := func(wide int) {
		top, end := g.label("columns"), g.label("end")
		g.SUBQ(I32(wide*g.lanes()), n)
		g.JLT(LabelRef(end))
		g.Label(top)
		body(wide, nil)
		bStep(I32(wide * vecBytes))
		cStep(I32(wide * vecBytes))
		g.SUBQ(I32(wide*g.lanes()), n)
		g.JGE(LabelRef(top))
		g.Label(end)
		g.ADDQ(I32(wide*g.lanes()), n)
	}
	loop(wide)
	if wide > 1 {
		loop(1)
	}
	done := g.label("done")
	g.TESTQ(n, n)
	g.JEQ(LabelRef(done))
	body(1, g.tailMask(g, n, g.registers()-1))
	g.Label(done)
}
