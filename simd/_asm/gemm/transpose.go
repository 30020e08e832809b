package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// transpose writes the kernel that transposes up to one vector's number of rows, in square blocks
// of columns. It neither reads nor stores missing rows.
func (g *gen) transpose() {
	g.function("gemmTranspose"+g.upper(),
		"func(dst, src *float32, ds, ss, rows, cols int)",
		fmt.Sprintf("gemmTranspose%s is a transposeFunc.", g.upper()))
	lanes := g.lanes()
	dst, src, ds, ss, rows, cols := g.GP64(), g.GP64(), g.GP64(), g.GP64(), g.GP64(), g.GP64()
	g.Load(g.Param("dst"), dst)
	g.Load(g.Param("src"), src)
	g.Load(g.Param("ds"), ds)
	g.Load(g.Param("ss"), ss)
	g.Load(g.Param("cols"), cols)

	var v []reg.Register
	for i := 0; i < lanes; i++ {
		v = append(v, g.vector(i))
	}
	p, left := g.GP64(), g.GP64()
	block, whole, part, loaded := g.label("block"), g.label("whole"), g.label("part"), g.label("loaded")
	done := g.label("done")

	g.Label(block)
	g.Load(g.Param("rows"), rows)
	g.TESTQ(cols, cols)
	g.JLE(LabelRef(done))
	g.MOVQ(src, p)
	g.CMPQ(cols, I32(lanes))
	g.JGE(LabelRef(whole))

	// The last block: fewer columns.
	mask := g.tailMask(g, cols, g.registers()-1)
	for i := range v {
		absent := g.label("absent")
		g.zero(g, v[i])
		g.CMPQ(rows, I32(i))
		g.JLE(LabelRef(absent))
		g.loadMasked(g, Mem{Base: p}, mask, v[i])
		g.Label(absent)
		g.ADDQ(ss, p)
	}
	g.JMP(LabelRef(loaded))

	g.Label(whole)
	g.CMPQ(rows, I32(lanes))
	g.JLT(LabelRef(part))
	for i := range v {
		g.VMOVUPS(Mem{Base: p}, v[i])
		g.ADDQ(ss, p)
	}
	g.JMP(LabelRef(loaded))

	g.Label(part)
	for i := range v {
		absent := g.label("absent")
		g.zero(g, v[i])
		g.CMPQ(rows, I32(i))
		g.JLE(LabelRef(absent))
		g.VMOVUPS(Mem{Base: p}, v[i])
		g.Label(absent)
		g.ADDQ(ss, p)
	}

	g.Label(loaded)
	out := g.shuffle(g)
	full, stored := g.label("full"), g.label("stored")
	store := func(put func(v reg.Register, m Mem)) {
		g.MOVQ(cols, left)
		for i := range out {
			put(out[i], Mem{Base: dst})
			g.ADDQ(ds, dst)
			if i < lanes-1 {
				g.DECQ(left)
				g.JEQ(LabelRef(done))
			}
		}
	}
	g.CMPQ(rows, I32(lanes))
	g.JGE(LabelRef(full)) // masked stores take ten times as long on some processors
	mask = g.tailMask(g, rows, 0)
	store(func(v reg.Register, m Mem) { g.storeMasked(g, v, mask, m) })
	g.JMP(LabelRef(stored))
	g.Label(full)
	store(func(v reg.Register, m Mem) { g.VMOVUPS(v, m) })
	g.Label(stored)
	g.ADDQ(I32(4*lanes), src)
	g.SUBQ(I32(lanes), cols)
	g.JMP(LabelRef(block))

	g.Label(done)
	g.VZEROUPPER()
	g.RET()
}

// braid writes the kernel that braids the rows of the tallest tile, four columns at a time. It
// loads quarters of a vector from rows that are four apart, which uses the arithmetic ports, so
// that less work remains for the single shuffle port.
func (g *gen) braid() {
	g.function("gemmBraid"+g.upper(),
		"func(dst, src *float32, ss, cols int)",
		fmt.Sprintf("gemmBraid%s is a braidFunc.", g.upper()))
	const quarter = 4
	dst, src, ss, cols := g.GP64(), g.GP64(), g.GP64(), g.GP64()
	g.Load(g.Param("dst"), dst)
	g.Load(g.Param("src"), src)
	g.Load(g.Param("ss"), ss)
	g.Load(g.Param("cols"), cols)
	at, advance := g.rowAddresses(src, ss, g.rows())
	r, t := make([]reg.Register, quarter), make([]reg.Register, quarter)
	for i := range r {
		r[i], t[i] = g.vector(i), g.vector(quarter+i)
	}

	loop := g.label("columns")
	g.Label(loop)
	for i := 0; i < g.rows(); i++ {
		if v := r[i%quarter]; i < quarter {
			g.VMOVUPS(at(i, 0), reg.Vector.Lookup(reg.Index(i), reg.S128))
		} else {
			g.VINSERTF32X4(U8(i/quarter), at(i, 0), v, v)
		}
	}
	g.VUNPCKLPS(r[1], r[0], t[0])
	g.VUNPCKHPS(r[1], r[0], t[1])
	g.VUNPCKLPS(r[3], r[2], t[2])
	g.VUNPCKHPS(r[3], r[2], t[3])
	g.VUNPCKLPD(t[2], t[0], r[0])
	g.VUNPCKHPD(t[2], t[0], r[1])
	g.VUNPCKLPD(t[3], t[1], r[2])
	g.VUNPCKHPD(t[3], t[1], r[3])
	for i, v := range r {
		g.VMOVUPS(v, Mem{Base: dst, Disp: 4 * g.lanes() * i})
	}
	advance(I8(4 * quarter))
	g.ADDQ(I32(4*quarter*g.lanes()), dst)
	g.SUBQ(I8(quarter), cols)
	g.JG(LabelRef(loop))
	g.VZEROUPPER()
	g.RET()
}
