package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// transpose writes the kernel that transposes 16 rows. It stores whole cache lines where rows of dst are aligned: a line
// that is stored in two parts may leave the first cache in between, if the distance of the rows is a power of two.
func (g *gen) transpose() {
	g.function("transpose16AVX2", "func(dst, x *float32, ds, ss, blocks int)",
		"transpose16AVX2 transposes a matrix of 16 rows, which are ss elements apart in x, and of 4 columns for each block. Column j",
		"becomes row j of dst, ds elements after the row before it.")
	dst, ds, ss, blocks := g.param("dst"), g.param("ds"), g.param("ss"), g.param("blocks")
	x, ss3, ds3 := []reg.GPVirtual{g.param("x")}, g.GP64(), g.GP64()
	g.SHLQ(U8(2), ds)
	g.SHLQ(U8(2), ss)
	g.LEAQ(Mem{Base: ss, Index: ss, Scale: 2}, ss3)
	g.LEAQ(Mem{Base: ds, Index: ds, Scale: 2}, ds3)
	for i := range 3 {
		x = append(x, g.GP64())
		g.LEAQ(Mem{Base: x[i], Index: ss, Scale: 4}, x[i+1])
	}
	row := func(base, one, three reg.GPVirtual, i int) Mem {
		return []Mem{{Base: base}, {Base: base, Index: one, Scale: 1}, {Base: base, Index: one, Scale: 2}, {Base: base, Index: three, Scale: 1}}[i]
	}
	g.Label("block")
	var halves [2][]reg.VecVirtual
	for h := range halves {
		v := make([]reg.VecVirtual, 4)
		for i := range v {
			v[i] = g.YMM()
			g.VBROADCASTF128(row(x[2*h], ss, ss3, i), v[i])
			g.VINSERTF128(U8(1), row(x[2*h+1], ss, ss3, i), v[i], v[i])
		}
		halves[h] = g.turn(v)
	}
	for i := range 4 {
		m := row(dst, ds, ds3, i)
		g.VMOVUPS(halves[0][i], m)
		g.VMOVUPS(halves[1][i], m.Offset(4*lanes))
	}
	for _, p := range x {
		g.ADDQ(U8(16), p)
	}
	g.LEAQ(Mem{Base: dst, Index: ds, Scale: 4}, dst)
	g.DECQ(blocks)
	g.JNE(LabelRef("block"))
	g.ret()
}
