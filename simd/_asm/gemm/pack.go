package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
)

// rowsAtOnce is the number of rows of B that are read side by side, as streams that the hardware
// prefetcher recognises.
const rowsAtOnce = 4

// copyPanels writes the kernel that copies rows of B to panels as wide as a tile. It copies row by
// row, and not panel by panel, because this is the fastest order of memory accesses, and prefetches
// the next rows: the processor's prefetcher follows a row but not from one row to the next.
func (g *gen) copyPanels() {
	g.function("gemmCopyPanels"+g.upper(),
		"func(dst, src *float32, ss, dp, k, panels int)",
		fmt.Sprintf("gemmCopyPanels%s is a copyPanelsFunc.", g.upper()))
	dst, src, ss, ss3, dp, k, panels := g.GP64(), g.GP64(), g.GP64(), g.GP64(), g.GP64(), g.GP64(), g.GP64()
	g.Load(g.Param("dst"), dst)
	g.Load(g.Param("src"), src)
	g.Load(g.Param("ss"), ss)
	g.Load(g.Param("dp"), dp)
	g.Load(g.Param("k"), k)
	g.LEAQ(Mem{Base: ss, Index: ss, Scale: 2}, ss3)
	rowBytes := 4 * g.lanes() * vectors
	from, to, soon := g.GP64(), g.GP64(), g.GP64()

	// copies writes the loop over the panels of n rows.
	copies := func(n int) {
		loop := g.label("panels")
		g.MOVQ(src, from)
		g.MOVQ(dst, to)
		g.LEAQ(Mem{Base: src, Index: ss, Scale: rowsAtOnce}, soon)
		g.Load(g.Param("panels"), panels)
		g.Label(loop)
		for i := 0; i < n; i++ {
			m := Mem{Base: from}
			switch i {
			case 1, 2:
				m.Index, m.Scale = ss, uint8(i)
			case 3:
				m.Index, m.Scale = ss3, 1
			}
			for b := 0; b < vectors; b++ {
				m.Disp = b * 4 * g.lanes()
				v := g.vector(i*vectors + b)
				g.VMOVUPS(m, v)
				g.VMOVUPS(v, Mem{Base: to, Disp: i*rowBytes + m.Disp})
			}
			for b := 0; n == rowsAtOnce && b < rowBytes; b += line {
				m.Base, m.Disp = soon, b
				g.PREFETCHT1(m)
			}
		}
		g.ADDQ(I32(rowBytes), from)
		g.ADDQ(I32(rowBytes), soon)
		g.ADDQ(dp, to)
		g.DECQ(panels)
		g.JNE(LabelRef(loop))
		g.ADDQ(I32(n*rowBytes), dst)
	}

	rows, rest, last, done := g.label("rows"), g.label("rest"), g.label("last"), g.label("done")
	g.SUBQ(I8(rowsAtOnce), k)
	g.JLT(LabelRef(rest))
	g.Label(rows)
	copies(rowsAtOnce)
	g.LEAQ(Mem{Base: src, Index: ss, Scale: rowsAtOnce}, src)
	g.SUBQ(I8(rowsAtOnce), k)
	g.JGE(LabelRef(rows))
	g.Label(rest)
	g.ADDQ(I8(rowsAtOnce), k)
	g.JEQ(LabelRef(done))
	g.Label(last)
	copies(1)
	g.ADDQ(ss, src)
	g.DECQ(k)
	g.JNE(LabelRef(last))
	g.Label(done)
	g.VZEROUPPER()
	g.RET()
}
