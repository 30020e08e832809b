package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// correlateWide is the number of vectors that the kernel computes side by side.
const correlateWide = 8

// correlate writes the kernel of one row of a convolution with few channels: it adds rows of
// pixels, each at its own address and scaled by a weight.
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

// correlatePair writes the kernel of two rows of a convolution, one above the other: most pixels
// contribute to both rows and are loaded once.
func (g *gen) correlatePair() {
	g.function("convPair"+g.upper(),
		"func(y, x *float32, ys int, offsets *int, weights *float32, start float32, outer, inner, n int)",
		fmt.Sprintf("convPair%s is a convPairFunc.", g.upper()))
	wide := g.pairWide()
	p := &pairPart{gen: g, stride: wide}
	p.y, p.x, p.ys = g.GP64(), g.GP64(), g.GP64()
	n := g.GP64()
	g.Load(g.Param("y"), p.y)
	g.Load(g.Param("x"), p.x)
	g.Load(g.Param("ys"), p.ys)
	g.Load(g.Param("n"), n)
	p.start, p.pixels = g.vector(2*wide), g.vector(2*wide+1)
	p.w = []reg.Register{g.vector(2*wide + 2), g.vector(2*wide + 3)}
	g.VBROADCASTSS(g.slot("start"), p.start)

	p.offsets, p.weights, p.taps, p.at = g.GP64(), g.GP64(), g.GP64(), g.GP64()
	for _, wide := range []int{wide, 1} {
		top, end := g.label("columns"), g.label("end")
		g.SUBQ(I32(wide*g.lanes()), n)
		g.JLT(LabelRef(end))
		g.Label(top)
		p.columns(wide, nil)
		g.ADDQ(I32(wide*4*g.lanes()), p.x)
		g.ADDQ(I32(wide*4*g.lanes()), p.y)
		g.SUBQ(I32(wide*g.lanes()), n)
		g.JGE(LabelRef(top))
		g.Label(end)
		g.ADDQ(I32(wide*g.lanes()), n)
	}
	finished := g.label("finished")
	g.TESTQ(n, n)
	g.JEQ(LabelRef(finished))
	p.columns(1, g.tailMask(g, n, g.registers()-1))
	g.Label(finished)
	g.VZEROUPPER()
	g.RET()
}

// pairPart holds the values that the parts of correlatePair share.
type pairPart struct {
	*gen
	stride                     int // distance between the sums of the two rows, in registers
	y, x, ys                   reg.GPVirtual
	offsets, weights, taps, at reg.GPVirtual
	start, pixels              reg.Register
	w                          []reg.Register
}

func (p *pairPart) acc(row, v int) reg.Register { return p.vector(row*p.stride + v) }

// columns computes wide vectors of both rows, from the taps of the upper row only, of both rows,
// and of the lower row only.
func (p *pairPart) columns(wide int, mask reg.Register) {
	for v := 0; v < wide; v++ {
		p.VMOVAPS(p.start, p.acc(0, v))
		p.VMOVAPS(p.start, p.acc(1, v))
	}
	p.Load(p.Param("offsets"), p.offsets)
	p.Load(p.Param("weights"), p.weights)
	p.addTaps("outer", []int{0}, wide, mask)
	p.addTaps("inner", []int{0, 1}, wide, mask)
	p.addTaps("outer", []int{1}, wide, mask)
	for row := 0; row < 2; row++ {
		for v := 0; v < wide; v++ {
			m := Mem{Base: p.y, Disp: v * 4 * p.lanes()}
			if row == 1 {
				m.Index, m.Scale = p.ys, 1
			}
			if mask != nil {
				p.storeMasked(p.gen, p.acc(row, v), mask, m)
			} else {
				p.VMOVUPS(p.acc(row, v), m)
			}
		}
	}
}

// addTaps adds the products of some taps to the rows. count is the parameter with the number of taps.
func (p *pairPart) addTaps(count string, rows []int, wide int, mask reg.Register) {
	loop, done := p.label("taps"), p.label("done")
	p.Load(p.Param(count), p.taps)
	p.TESTQ(p.taps, p.taps)
	p.JEQ(LabelRef(done))
	p.Label(loop)
	p.MOVQ(Mem{Base: p.offsets}, p.at)
	for i, row := range rows {
		p.VBROADCASTSS(Mem{Base: p.weights, Disp: 4 * i}, p.w[row])
	}
	for v := 0; v < wide; v++ {
		m := Mem{Base: p.x, Index: p.at, Scale: 1, Disp: v * 4 * p.lanes()}
		if mask != nil {
			p.loadMasked(p.gen, m, mask, p.pixels)
		} else {
			p.VMOVUPS(m, p.pixels)
		}
		for _, row := range rows {
			p.VFMADD231PS(p.pixels, p.w[row], p.acc(row, v))
		}
	}
	p.ADDQ(I8(8), p.offsets)
	p.ADDQ(I8(4*len(rows)), p.weights)
	p.DECQ(p.taps)
	p.JNE(LabelRef(loop))
	p.Label(done)
}
