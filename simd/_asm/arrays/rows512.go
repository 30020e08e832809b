package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// mapRows writes a kernel that applies an operation to rows, with an element of y for each row or with rows of y. One call for all
// rows takes less time than a call for each if rows are short.
func (g *gen) mapRows(name, what string, single bool, do func(y, x, dst Op)) {
	name = "rows" + name + "AVX512"
	with := "a row of y"
	if single {
		with = "an element of y"
	}
	g.function(name, "func(dst, x, y *float32, n, rows, ds, xs, ys int)",
		name+" sets rows of n elements to rows of x "+what+" "+with+". The distances ds, xs and ys of the rows are in bytes.")
	param := func(name string) reg.Register { return g.Load(g.Param(name), g.GP64()) }
	dst, x, y, n, rows, ds, xs, ys := param("dst"), param("x"), param("y"), param("n"), param("rows"), param("ds"), param("xs"), param("ys")
	rest, tail, ones, at := g.GP64(), g.K(), g.GP32(), g.GP64()
	g.MOVQ(n, rest)
	g.ANDQ(I8(lanes512-1), rest)
	g.MOVL(U32(1<<lanes512-1), ones)
	g.BZHIL(rest.As32(), ones, ones)
	g.KMOVW(ones, tail)
	g.SHRQ(U8(4), n)
	g.SHLQ(U8(6), n) // bytes of whole vectors
	v, w := g.ZMM(), g.ZMM()
	g.Label("row")
	if single {
		g.VBROADCASTSS(Mem{Base: y}, w)
	}
	g.XORL(at.As32(), at.As32())
	g.TESTQ(n, n)
	g.JZ(LabelRef("tail"))
	g.Label("vector")
	g.VMOVDQU32(Mem{Base: x, Index: at, Scale: 1}, v)
	if single {
		do(w, v, v)
	} else {
		do(Mem{Base: y, Index: at, Scale: 1}, v, v)
	}
	g.VMOVDQU32(v, Mem{Base: dst, Index: at, Scale: 1})
	g.ADDQ(I8(4*lanes512), at)
	g.CMPQ(at, n)
	g.JL(LabelRef("vector"))
	g.Label("tail")
	g.TESTL(rest.As32(), rest.As32())
	g.JZ(LabelRef("next"))
	g.VMOVDQU32_Z(Mem{Base: x, Index: at, Scale: 1}, tail, v)
	if !single {
		g.VMOVDQU32_Z(Mem{Base: y, Index: at, Scale: 1}, tail, w)
	}
	do(w, v, v)
	g.VMOVDQU32(v, tail, Mem{Base: dst, Index: at, Scale: 1})
	g.Label("next")
	g.ADDQ(ds, dst)
	g.ADDQ(xs, x)
	g.ADDQ(ys, y)
	g.DECQ(rows)
	g.JNZ(LabelRef("row"))
	g.ret()
}

// mapRowsKernels writes the kernels of the operations that broadcast most often.
func (g *gen) mapRowsKernels() {
	for _, single := range []bool{false, true} {
		suffix := "Rows"
		if single {
			suffix = "Single"
		}
		g.mapRows("AddF32"+suffix, "plus", single, func(y, x, dst Op) { g.VADDPS(y, x, dst) })
		g.mapRows("SubF32"+suffix, "minus", single, func(y, x, dst Op) { g.VSUBPS(y, x, dst) })
		g.mapRows("MulF32"+suffix, "times", single, func(y, x, dst Op) { g.VMULPS(y, x, dst) })
		g.mapRows("AddI32"+suffix, "plus", single, func(y, x, dst Op) { g.VPADDD(y, x, dst) })
		g.mapRows("SubI32"+suffix, "minus", single, func(y, x, dst Op) { g.VPSUBD(y, x, dst) })
		g.mapRows("MulI32"+suffix, "times", single, func(y, x, dst Op) { g.VPMULLD(y, x, dst) })
	}
}
