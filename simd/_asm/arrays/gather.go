package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gatherRows copies rows in pieces of 32, 16 or 8 bytes. The last two pieces of a row overlap.
func (g *gen) gatherRows() {
	g.function("gatherRowsAVX2", "func(dst, x *byte, ids *int32, n, extent, size int) int",
		"gatherRowsAVX2 copies the rows of size bytes that ids name out of a table of extent rows, up to the first row that",
		"the table lacks. It returns how many these are. n is positive, and size is at least 8.")
	load := func(name string) reg.GPVirtual { return g.Load(g.Param(name), g.GP64()).(reg.GPVirtual) }
	dst, x, ids, n, extent, size := load("dst"), load("x"), load("ids"), load("n"), load("extent"), load("size")
	done := g.GP64()
	g.XORQ(done, done)
	g.CMPQ(size, U8(16))
	g.JLT(LabelRef("rows8"))
	g.CMPQ(size, U8(32))
	g.JLT(LabelRef("rows16"))
	at, back, k, v := g.GP64(), g.GP64(), g.GP64(), g.YMM()
	for _, piece := range []int{32, 16, 8} {
		label := func(s string) string { return fmt.Sprintf("%s%d", s, piece) }
		move := func(k reg.GPVirtual) {
			from, to := Mem{Base: at, Index: k, Scale: 1, Disp: -piece}, Mem{Base: dst, Index: k, Scale: 1, Disp: -piece}
			switch piece {
			case 32:
				g.VMOVDQU(from, v)
				g.VMOVDQU(v, to)
			case 16:
				g.VMOVDQU(from, v.AsX())
				g.VMOVDQU(v.AsX(), to)
			default:
				g.MOVQ(from, back)
				g.MOVQ(back, to)
			}
		}
		g.Label(label("rows"))
		g.MOVLQSX(Mem{Base: ids, Index: done, Scale: 4}, at)
		g.LEAQ(Mem{Base: at, Index: extent, Scale: 1}, back)
		g.TESTQ(at, at)
		g.CMOVQLT(back, at)
		g.CMPQ(at, extent)
		g.JCC(LabelRef("end"))
		g.IMULQ(size, at)
		g.ADDQ(x, at)
		g.MOVQ(U32(piece), k)
		g.Label(label("pieces"))
		move(k)
		g.ADDQ(U8(piece), k)
		g.CMPQ(k, size)
		g.JLT(LabelRef(label("pieces")))
		move(size)
		g.ADDQ(size, dst)
		g.INCQ(done)
		g.CMPQ(done, n)
		g.JLT(LabelRef(label("rows")))
		if piece > 8 {
			g.JMP(LabelRef("end"))
		}
	}
	g.Label("end")
	g.Store(done, g.ReturnIndex(0))
	g.ret()
}
