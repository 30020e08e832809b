package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// repeat fills runs of at least a vector. The last vector of a run overlaps the previous one.
func (g *gen) repeat() {
	g.function("repeatAVX2", "func(dst, x *uint32, n, step, count int)",
		"repeatAVX2 writes each of count elements of x, which are step elements apart, n times to dst. n is at least 8.")
	load := func(name string) reg.GPVirtual { return g.Load(g.Param(name), g.GP64()).(reg.GPVirtual) }
	dst, x, n, step, count := load("dst"), load("x"), load("n"), load("step"), load("count")
	i, v := g.GP64(), g.YMM()
	g.Label("run")
	g.DECQ(count)
	g.JLT(LabelRef("done"))
	g.VBROADCASTSS(Mem{Base: x}, v)
	g.LEAQ(Mem{Base: x, Index: step, Scale: 4}, x)
	g.MOVQ(U32(lanes), i)
	g.Label("vector")
	g.VMOVDQU(v, Mem{Base: dst, Index: i, Scale: 4, Disp: -4 * lanes})
	g.ADDQ(U8(lanes), i)
	g.CMPQ(i, n)
	g.JLT(LabelRef("vector"))
	g.VMOVDQU(v, Mem{Base: dst, Index: n, Scale: 4, Disp: -4 * lanes})
	g.LEAQ(Mem{Base: dst, Index: n, Scale: 4}, dst)
	g.JMP(LabelRef("run"))
	g.Label("done")
	g.ret()
}

// repeatShort writes the kernel for shorter runs: it stores a whole vector for each element, and
// the next element overwrites the excess.
func (g *gen) repeatShort() {
	g.function("repeatShortAVX2", "func(dst, x *uint32, n, step, count int)",
		"repeatShortAVX2 writes each of count elements of x, which are step elements apart, n times to dst, and the last one 8-n times more.")
	dst, x, n, step, count := g.param("dst"), g.param("x"), g.param("n"), g.param("step"), g.param("count")
	v := g.YMM()
	g.SHLQ(U8(2), n)
	g.SHLQ(U8(2), step)
	g.Label("run")
	g.VBROADCASTSS(Mem{Base: x}, v)
	g.ADDQ(step, x)
	g.VMOVDQU(v, Mem{Base: dst})
	g.ADDQ(n, dst)
	g.DECQ(count)
	g.JNE(LabelRef("run"))
	g.ret()
}
