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

// gather writes the kernel that copies pixels under a window to a panel of B.
func (g *gen) gather() {
	g.function("convGather"+g.upper(),
		"func(dst, src *float32, offsets *int, k, n int)",
		fmt.Sprintf("convGather%s is a convGatherFunc.", g.upper()))
	vecBytes := 4 * g.lanes()
	dst, src, offsets, k, n, at := g.GP64(), g.GP64(), g.GP64(), g.GP64(), g.GP64(), g.GP64()
	g.Load(g.Param("dst"), dst)
	g.Load(g.Param("src"), src)
	g.Load(g.Param("offsets"), offsets)
	g.Load(g.Param("k"), k)
	g.Load(g.Param("n"), n)
	single, done := g.label("single"), g.label("done")
	body := func(vecs int) {
		mask := g.tailMask(g, n, g.registers()-1)
		loop := g.label("loop")
		g.Label(loop)
		g.MOVQ(Mem{Base: offsets}, at)
		for v := 0; v < vecs; v++ {
			from, to, r := Mem{Base: src, Index: at, Scale: 1, Disp: v * vecBytes}, Mem{Base: dst, Disp: v * vecBytes}, g.vector(v)
			if v == vecs-1 {
				g.loadMasked(g, from, mask, r)
				g.storeMasked(g, r, mask, to)
			} else {
				g.VMOVUPS(from, r)
				g.VMOVUPS(r, to)
			}
		}
		g.ADDQ(I8(8), offsets)
		g.ADDQ(I32(vectors*vecBytes), dst)
		g.DECQ(k)
		g.JNE(LabelRef(loop))
	}
	g.TESTQ(k, k)
	g.JLE(LabelRef(done))
	g.CMPQ(n, I32(g.lanes()))
	g.JLE(LabelRef(single))
	g.SUBQ(I32(g.lanes()), n)
	body(vectors)
	g.JMP(LabelRef(done))
	g.Label(single)
	body(vectors - 1)
	g.Label(done)
	g.VZEROUPPER()
	g.RET()
}

// correlatePair writes the kernel of two rows of a convolution, one above the
// other: most pixels take part in both and are loaded once for them.
func (g *gen) correlatePair() {
	g.function("convPair"+g.upper(),
		"func(y, x *float32, ys int, offsets *int, weights *float32, start float32, outer, inner, n int)",
		fmt.Sprintf("convPair%s is a convPairFunc.", g.upper()))
	vecBytes := 4 * g.lanes()
	wide := g.pairWide()
	y, x, ys, n := g.GP64(), g.GP64(), g.GP64(), g.GP64()
	g.Load(g.Param("y"), y)
	g.Load(g.Param("x"), x)
	g.Load(g.Param("ys"), ys)
	g.Load(g.Param("n"), n)
	acc := func(row, v int) reg.Register { return g.vector(row*wide + v) }
	start, pixels := g.vector(2*wide), g.vector(2*wide+1)
	w := []reg.Register{g.vector(2*wide + 2), g.vector(2*wide + 3)}
	g.VBROADCASTSS(g.slot("start"), start)

	offsets, weights, taps, at := g.GP64(), g.GP64(), g.GP64(), g.GP64()
	body := func(wide int, mask reg.Register) {
		for v := 0; v < wide; v++ {
			g.VMOVAPS(start, acc(0, v))
			g.VMOVAPS(start, acc(1, v))
		}
		g.Load(g.Param("offsets"), offsets)
		g.Load(g.Param("weights"), weights)
		for _, part := range []struct {
			count string
			rows  []int
		}{{"outer", []int{0}}, {"inner", []int{0, 1}}, {"outer", []int{1}}} {
			loop, done := g.label("taps"), g.label("done")
			g.Load(g.Param(part.count), taps)
			g.TESTQ(taps, taps)
			g.JEQ(LabelRef(done))
			g.Label(loop)
			g.MOVQ(Mem{Base: offsets}, at)
			for i, row := range part.rows {
				g.VBROADCASTSS(Mem{Base: weights, Disp: 4 * i}, w[row])
			}
			for v := 0; v < wide; v++ {
				m := Mem{Base: x, Index: at, Scale: 1, Disp: v * vecBytes}
				if mask != nil {
					g.loadMasked(g, m, mask, pixels)
				} else {
					g.VMOVUPS(m, pixels)
				}
				for _, row := range part.rows {
					g.VFMADD231PS(pixels, w[row], acc(row, v))
				}
			}
			g.ADDQ(I8(8), offsets)
			g.ADDQ(I8(4*len(part.rows)), weights)
			g.DECQ(taps)
			g.JNE(LabelRef(loop))
			g.Label(done)
		}
		for row := 0; row < 2; row++ {
			for v := 0; v < wide; v++ {
				m := Mem{Base: y, Disp: v * vecBytes}
				if row == 1 {
					m.Index, m.Scale = ys, 1
				}
				if mask != nil {
					g.storeMasked(g, acc(row, v), mask, m)
				} else {
					g.VMOVUPS(acc(row, v), m)
				}
			}
		}
	}
	for _, wide := range []int{wide, 1} {
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
