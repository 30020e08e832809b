package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// transpose writes the kernel that interleaves eight matrices to lanes, and back, by transposing
// squares of 8×8 elements.
func (g *gen) transpose() {
	g.function("lanesTransposeAVX2", "func(dst, src *float32, dstRow, srcRow, dstStep, srcStep, n int)",
		"lanesTransposeAVX2 transposes n squares of 8×8 elements. Strides of rows and of squares are in bytes. n is positive.")
	dst, src, n := g.param("dst"), g.param("src"), g.param("n")
	dstRow, srcRow, dstStep, srcStep := g.param("dstRow"), g.param("srcRow"), g.param("dstStep"), g.param("srcStep")
	triple := func(row reg.GPVirtual) reg.GPVirtual {
		r := g.GP64()
		g.LEAQ(Mem{Base: row, Index: row, Scale: 2}, r)
		return r
	}
	dst3, src3, lower := triple(dstRow), triple(srcRow), g.GP64()
	row := func(base, stride, stride3 reg.GPVirtual, i, disp int) Mem {
		return []Mem{{Base: base, Disp: disp}, {Base: base, Index: stride, Scale: 1, Disp: disp}, {Base: base, Index: stride, Scale: 2, Disp: disp}, {Base: base, Index: stride3, Scale: 1, Disp: disp}}[i]
	}
	var r, t [4]reg.VecVirtual
	for i := range r {
		r[i], t[i] = g.YMM(), g.YMM()
	}
	g.Label("next")
	g.LEAQ(Mem{Base: src, Index: srcRow, Scale: 4}, lower)
	var columns [8]reg.VecVirtual
	for half := range 2 {
		for i := range r { // rows i and i+4
			columns[4*half+i] = g.YMM()
			g.VMOVUPS(row(src, srcRow, src3, i, 16*half), r[i].AsX())
			g.VINSERTF128(U8(1), row(lower, srcRow, src3, i, 16*half), r[i], r[i])
		}
		g.VUNPCKLPS(r[1], r[0], t[0])
		g.VUNPCKHPS(r[1], r[0], t[1])
		g.VUNPCKLPS(r[3], r[2], t[2])
		g.VUNPCKHPS(r[3], r[2], t[3])
		for i := range 2 {
			g.VUNPCKLPD(t[i+2], t[i], columns[4*half+2*i])
			g.VUNPCKHPD(t[i+2], t[i], columns[4*half+2*i+1])
		}
	}
	g.LEAQ(Mem{Base: dst, Index: dstRow, Scale: 4}, lower)
	for i, v := range columns {
		base := dst
		if i >= 4 {
			base = lower
		}
		g.VMOVUPS(v, row(base, dstRow, dst3, i%4, 0))
	}
	g.ADDQ(dstStep, dst)
	g.ADDQ(srcStep, src)
	g.DECQ(n)
	g.JNZ(LabelRef("next"))
	g.ret()
}
