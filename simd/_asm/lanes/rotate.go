package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// at returns vector i of a row.
func at(base reg.Register, i int) Mem { return Mem{Base: base, Disp: vector * i} }

// ql writes a step of the implicit QL iteration on tridiagonal matrices: the recurrence, without the vectors.
func (g *gen) ql() {
	g.function("lanesQLAVX2", "func(turns, d, e, state *float32, from, to *int32, first, last int)",
		"lanesQLAVX2 does a step of the QL algorithm for elements last-1 down to first of tridiagonal matrices with diagonals d and off-diagonals e. A lane",
		"takes part in elements to[lane] to from[lane]-1. It writes the cosine and the sine of each rotation to turns: 1 and 0 in lanes that take no part.",
		"state has g, which it updates. It also writes the shift of the last diagonal element to state.")
	turns, d, e, state := g.param("turns"), g.param("d"), g.param("e"), g.param("state")
	first, i := g.param("first"), g.param("last")
	upper, lower, place, minus := g.YMM(), g.YMM(), g.YMM(), g.splat(0xffffffff)
	p := g.param("from")
	g.VMOVDQU(Mem{Base: p}, upper)
	q := g.param("to")
	g.VMOVDQU(Mem{Base: q}, lower)
	g.VMOVD(i.As32(), place.AsX())
	g.VPBROADCASTD(place.AsX(), place)
	one, gv, s, c, shift := g.splat(0x3f800000), g.YMM(), g.YMM(), g.YMM(), g.YMM()
	g.VMOVUPS(Mem{Base: state}, gv)
	g.VMOVAPS(one, s)
	g.VMOVAPS(one, c)
	g.VXORPS(shift, shift, shift)
	tiny := g.splat(0x0da24260) // 1e-30
	// The pointers are at element i.
	g.SHLQ(U8(5), i)
	g.SHLQ(U8(5), first)
	g.Label("next")
	g.SUBQ(U8(vector), i)
	g.CMPQ(i, first)
	g.JLT(LabelRef("end"))
	element := func(base reg.Register, next int) Mem { return Mem{Base: base, Index: i, Scale: 1, Disp: vector * next} }
	f, b, r, t, active := g.YMM(), g.YMM(), g.YMM(), g.YMM(), g.YMM()
	g.VPADDD(minus, place, place)
	g.VPCMPGTD(place, upper, active) // upper > place
	g.VPCMPGTD(place, lower, t)
	g.VPANDN(active, t, active) // and not lower > place
	g.VMOVUPS(element(e, 0), b)
	g.VMULPS(b, s, f)
	g.VMULPS(b, c, b)
	g.VMULPS(f, f, r)
	g.VFMADD231PS(gv, gv, r)
	g.VCMPPS(U8(0x1e), tiny, r, t) // r > tiny
	g.VSQRTPS(r, r)
	next := g.YMM()
	g.VMOVUPS(element(e, 1), next)
	g.VBLENDVPS(active, r, next, next)
	g.VMOVUPS(next, element(e, 1))
	g.VDIVPS(r, f, f) // the sine
	g.VDIVPS(r, gv, r)
	g.VANDPS(t, f, f)
	g.VBLENDVPS(t, r, one, r) // the cosine
	g.VANDPS(active, f, t)
	g.VBLENDVPS(active, f, s, s)
	g.VBLENDVPS(active, r, one, f)
	g.VBLENDVPS(active, r, c, c)
	pair := g.GP64()
	g.LEAQ(Mem{Base: turns, Index: i, Scale: 2}, pair)
	g.VMOVUPS(f, at(pair, 0))
	g.VMOVUPS(t, at(pair, 1))
	// From here on with the new s and c. The results of inactive lanes are dropped.
	g.VMOVUPS(element(d, 1), next)
	g.VSUBPS(shift, next, f) // g
	g.VMOVUPS(element(d, 0), r)
	g.VSUBPS(f, r, r)
	g.VMULPS(s, r, r)
	g.VMULPS(c, b, t)
	g.VADDPS(t, t, t)
	g.VADDPS(t, r, r)
	g.VMULPS(s, r, t)
	g.VBLENDVPS(active, t, shift, shift)
	g.VADDPS(t, f, f)
	g.VBLENDVPS(active, f, next, next)
	g.VMOVUPS(next, element(d, 1))
	g.VFMSUB231PS(c, r, b) // c·r - b
	g.VBLENDVPS(active, b, gv, gv)
	g.JMP(LabelRef("next"))
	g.Label("end")
	g.VMOVUPS(gv, at(state, 0))
	g.VMOVUPS(shift, at(state, 1))
	g.ret()
}

// turn writes the rotations of rows by a sequence of sines and cosines.
func (g *gen) turn() {
	g.function("lanesTurnAVX2", "func(x, turns *float32, stride, cols, rows int)",
		"lanesTurnAVX2 rotates rows i and i+1 of a matrix with rows+1 rows, for i from rows-1 down to 0, by cosine and sine i of turns: row x becomes",
		"c·x - s·y, and row y becomes s·x + c·y. Rows are stride bytes apart. rows is positive.")
	x, turns, stride, cols := g.param("x"), g.param("turns"), g.param("stride"), g.param("cols")
	rows, pair, row := g.GP64(), g.GP64(), g.GP64()
	g.Load(g.Param("rows"), rows)
	// Begin with the last row and its rotation.
	g.MOVQ(rows, pair)
	g.IMULQ(stride, rows)
	g.ADDQ(rows, x)
	g.SHLQ(U8(6), pair)
	g.ADDQ(pair, turns)
	c, s := g.YMM(), g.YMM()
	for _, width := range []int{4, 1} {
		label := map[int]string{4: "four", 1: "one"}[width]
		g.Label(label)
		g.SUBQ(U8(width), cols)
		g.JLT(LabelRef(label + "end"))
		g.MOVQ(x, row)
		g.MOVQ(turns, pair)
		g.Load(g.Param("rows"), rows)
		var ys []reg.VecVirtual
		for i := range width {
			ys = append(ys, g.YMM())
			g.VMOVUPS(at(row, i), ys[i])
		}
		g.Label(label + "row")
		g.SUBQ(U8(2*vector), pair)
		g.VMOVUPS(at(pair, 0), c)
		g.VMOVUPS(at(pair, 1), s)
		below := g.GP64()
		g.MOVQ(row, below)
		g.SUBQ(stride, row)
		for i, y := range ys {
			above, t := g.YMM(), g.YMM()
			g.VMOVUPS(at(row, i), above)
			g.VMULPS(s, above, t)
			g.VFMADD231PS(c, y, t)
			g.VMOVUPS(t, at(below, i))
			g.VMULPS(s, y, y)
			g.VFMSUB231PS(c, above, y) // c·x - s·y
		}
		g.DECQ(rows)
		g.JNZ(LabelRef(label + "row"))
		for i, y := range ys {
			g.VMOVUPS(y, at(row, i))
		}
		g.ADDQ(U32(vector*width), x)
		g.JMP(LabelRef(label))
		g.Label(label + "end")
		g.ADDQ(U8(width), cols)
	}
	g.ret()
}
