package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// correlateWide is how many vectors the kernel computes side by side.
const correlateWide = 8

// correlate writes the kernel of one row of a convolution with few channels:
// every weight scales a row of pixels that lies somewhere, and they add up.
func (g *gen) correlate() {
	g.function("convRow"+g.upper(),
		"func(y, x *float32, offsets *int, weights *float32, start float32, taps, n int)",
		fmt.Sprintf("convRow%s is a convRowFunc.", g.upper()))
	vecBytes := 4 * g.lanes()
	y, x, n := g.GP64(), g.GP64(), g.GP64()
	g.Load(g.Param("y"), y)
	g.Load(g.Param("x"), x)
	g.Load(g.Param("n"), n)
	start, w := g.vector(correlateWide), g.vector(correlateWide+1)
	g.VBROADCASTSS(g.slot("start"), start)

	offsets, weights, taps, at := g.GP64(), g.GP64(), g.GP64(), g.GP64()
	body := func(wide int, mask reg.Register) {
		loop, done := g.label("taps"), g.label("done")
		for v := 0; v < wide; v++ {
			g.VMOVAPS(start, g.vector(v))
		}
		g.Load(g.Param("offsets"), offsets)
		g.Load(g.Param("weights"), weights)
		g.Load(g.Param("taps"), taps)
		g.TESTQ(taps, taps)
		g.JEQ(LabelRef(done))
		g.Label(loop)
		g.MOVQ(Mem{Base: offsets}, at)
		g.VBROADCASTSS(Mem{Base: weights}, w)
		for v := 0; v < wide; v++ {
			m := Mem{Base: x, Index: at, Scale: 1, Disp: v * vecBytes}
			if mask != nil {
				g.loadMasked(g, m, mask, g.vector(correlateWide+2))
				g.VFMADD231PS(g.vector(correlateWide+2), w, g.vector(v))
			} else {
				g.VFMADD231PS(m, w, g.vector(v))
			}
		}
		g.ADDQ(I8(8), offsets)
		g.ADDQ(I8(4), weights)
		g.DECQ(taps)
		g.JNE(LabelRef(loop))
		g.Label(done)
		for v := 0; v < wide; v++ {
			m := Mem{Base: y, Disp: v * vecBytes}
			if mask != nil {
				g.storeMasked(g, g.vector(v), mask, m)
			} else {
				g.VMOVUPS(g.vector(v), m)
			}
		}
	}
	for _, wide := range []int{correlateWide, 1} {
		top, end := g.label("columns"), g.label("end")
		g.SUBQ(I32(wide*g.lanes()), n)
		g.JLT(LabelRef(end))
		g.Label(top)
		body(wide, nil)
		g.ADDQ(I32(wide*vecBytes), x)
		g.ADDQ(I32(wide*vecBytes), y)
		g.SUBQ(I32(wide*g.lanes()), n)
		g.JGE(LabelRef(top))
		g.Label(end)
		g.ADDQ(I32(wide*g.lanes()), n)
	}
	finished := g.label("finished")
	g.TESTQ(n, n)
	g.JEQ(LabelRef(finished))
	body(1, g.tailMask(g, n, g.registers()-1))
	g.Label(finished)
	g.VZEROUPPER()
	g.RET()
}
