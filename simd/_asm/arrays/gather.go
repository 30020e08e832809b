package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gatherRows copies rows in pieces of 32, 16 or 8 bytes. The last two pieces of a row overlap.
func (g *gen) gatherRows() {
	g.function("gatherRowsAVX2", "func(dst, x *byte, ids *int32, n, extent, size int) int",
		"gatherRowsAVX2 copies the rows of size bytes with the given ids from a table of extent rows. It stops at the first id that",
		"is out of range, and returns the number of copied rows. n is positive, and size is at least 8.")
	load := func(name string) reg.GPVirtual { return g.Load(g.Param(name), g.GP64()).(reg.GPVirtual) }
	dst, x, ids, n, extent, size := load("dst"), load("x"), load("ids"), load("n"), load("extent"), load("size")
	done, many := g.GP64(), g.GP64()
	g.XORQ(done, done)
	g.LEAQ(Mem{Base: size, Disp: -96}, many)
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
		if piece == 32 {
			g.fourPieces(at, dst, k, many)
			g.CMPQ(k, size)
			g.JGE(LabelRef("last32"))
		}
		g.Label(label("pieces"))
		move(k)
		g.ADDQ(U8(piece), k)
		g.CMPQ(k, size)
		g.JLT(LabelRef(label("pieces")))
		g.Label(label("last"))
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

// fourPieces copies four pieces of 32 bytes in each step of a loop, while k, where the first piece ends, is below many.
func (g *gen) fourPieces(at, dst, k, many reg.GPVirtual) {
	g.CMPQ(k, many)
	g.JGE(LabelRef("few"))
	g.Label("four")
	var v [4]reg.VecVirtual
	for i := range v {
		v[i] = g.YMM()
		g.VMOVDQU(Mem{Base: at, Index: k, Scale: 1, Disp: 32*i - 32}, v[i])
	}
	for i := range v {
		g.VMOVDQU(v[i], Mem{Base: dst, Index: k, Scale: 1, Disp: 32*i - 32})
	}
	g.SUBQ(I8(-128), k)
	g.CMPQ(k, many)
	g.JLT(LabelRef("four"))
	g.Label("few")
}

// gatherWords copies rows of one element, eight at a time.
func (g *gen) gatherWords() {
	const name = "gatherWordsAVX2"
	g.function(name, "func(dst, x *uint32, ids *int32, n, extent int, missing uint32)",
		name+" copies the elements with the given ids from a table of extent elements. An id below 0 counts from the end. For an id",
		"that is out of range it stores missing. n is a positive multiple of 8.")
	load := func(name string) reg.GPVirtual { return g.Load(g.Param(name), g.GP64()).(reg.GPVirtual) }
	dst, x, ids, n, extent := load("dst"), load("x"), load("ids"), load("n"), load("extent")
	missing := g.Load(g.Param("missing"), g.GP32()).(reg.GPVirtual)
	size, none, id, v, inside, over := g.YMM(), g.YMM(), g.YMM(), g.YMM(), g.YMM(), g.YMM()
	g.VMOVD(extent.As32(), size.AsX())
	g.VPBROADCASTD(size.AsX(), size)
	g.VMOVD(missing, none.AsX())
	g.VPBROADCASTD(none.AsX(), none)
	g.Label("loop")
	g.VMOVDQU(Mem{Base: ids}, id)
	g.VPSRAD(U8(31), id, v)
	g.VPAND(size, v, v)
	g.VPADDD(v, id, id)
	g.VPCMPGTD(id, size, inside)
	g.VPSRAD(U8(31), id, over)
	g.VPANDN(inside, over, inside)
	g.VMOVDQA(none, v)
	g.VPGATHERDD(inside, Mem{Base: x, Index: id, Scale: 4}, v)
	g.VMOVDQU(v, Mem{Base: dst})
	g.ADDQ(U8(4*lanes), ids)
	g.ADDQ(U8(4*lanes), dst)
	g.SUBQ(U8(lanes), n)
	g.JNZ(LabelRef("loop"))
	g.ret()
}
