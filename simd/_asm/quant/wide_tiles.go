package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// wideTileRows is the largest number of rows of a VNNI tile.
const wideTileRows = 4

// wideTile writes the function that multiplies a few rows of integers by sixteen packed rows of blocks. Each group of elements of a
// row of blocks has one scale. A vector of 512 bits has four elements of each of the sixteen rows.
func (g *gen) wideTile(rows, group int) {
	name := fmt.Sprintf("int8Tile%dBytes%d%s", rows, group, g.name)
	g.function(name, "func(c *float32, cRow int, x *int8, scales, sums *float32, corrections *int32, stride int, w *byte, ws, wb *float32, groups int)",
		fmt.Sprintf("%s is an int8TileFunc for %d rows.", name, rows))
	load := func(p string) reg.GPVirtual { return g.Load(g.Param(p), g.GP64()).(reg.GPVirtual) }
	o := &operands{rows: wideTileRows, x: load("x"), scales: load("scales"), sums: load("sums")}
	corrections, w, ws, wb, left, ahead := load("corrections"), load("w"), load("ws"), load("wb"), load("groups"), g.GP64()
	o.strides(g, load)
	g.IMUL3Q(U8(uint8(rows)), o.stride, ahead) // the next rows, which the hardware prefetcher does not load
	g.ADDQ(o.x, ahead)
	parts := run / group
	g.prefetchTile(rows, load)
	for range rows {
		v := g.ZMM()
		g.VPXORD(v, v, v)
		o.acc = append(o.acc, v)
	}
	g.Label("next")
	for r := range rows {
		g.PREFETCHT0(o.of(ahead, r, 0, o.stride, o.stride3, 1))
	}
	for part := range parts {
		g.wideTilePart(o, part, group, corrections, w, ws)
	}
	g.TESTQ(wb, wb)
	g.JEQ(LabelRef("unbiased"))
	for part := range parts {
		b := g.ZMM()
		g.VMOVUPS(Mem{Base: wb, Disp: 64 * part}, b)
		for r := range rows {
			g.VFMADD231PS_BCST(o.of(o.sums, r, 4*part, o.eighth, o.eighth3, uint8(parts)), b, o.acc[r])
		}
	}
	g.ADDQ(I32(int32(64*parts)), wb)
	g.ADDQ(U8(uint8(4*parts)), o.sums)
	g.Label("unbiased")
	for _, p := range []struct {
		r    reg.GPVirtual
		step int
	}{{o.x, run}, {ahead, run}, {o.scales, 4}, {corrections, 4 * parts}, {w, 16 * run}, {ws, 64 * parts}} {
		g.ADDQ(I32(int32(p.step)), p.r)
	}
	g.DECQ(left)
	g.JNE(LabelRef("next"))
	c, row := load("c"), load("cRow")
	for r, v := range o.acc {
		if r > 0 {
			g.ADDQ(row, c)
		}
		g.VADDPS(Mem{Base: c}, v, v)
		g.VMOVUPS(v, Mem{Base: c})
	}
	g.VZEROUPPER()
	g.RET()
}

// wideTilePart writes the products of one group.
func (g *gen) wideTilePart(o *operands, part, group int, corrections, w, ws reg.GPVirtual) {
	var sums []reg.VecVirtual
	for r := range o.acc {
		s := g.ZMM()
		g.VPBROADCASTD(o.of(corrections, r, 4*part, o.eighth, o.eighth3, uint8(run/group)), s)
		sums = append(sums, s)
	}
	for k := part * group; k < (part+1)*group; k += 4 {
		v := g.ZMM()
		g.VMOVDQU64(Mem{Base: w, Disp: 16 * k}, v)
		for r, s := range sums {
			g.VPDPBUSD_BCST(o.of(o.x, r, k, o.stride, o.stride3, 1), v, s)
		}
	}
	f := g.ZMM()
	g.VMOVUPS(Mem{Base: ws, Disp: 64 * part}, f)
	for r, s := range sums {
		p := g.ZMM()
		g.VMULPS_BCST(o.of(o.scales, r, 0, o.eighth, o.eighth3, 1), f, p)
		g.VCVTDQ2PS(s, s)
		g.VFMADD231PS(p, s, o.acc[r])
	}
}

// prefetchTile loads the rows of c into the cache.
func (g *gen) prefetchTile(rows int, load func(string) reg.GPVirtual) {
	c, row := load("c"), load("cRow")
	for r := range rows {
		if r > 0 {
			g.ADDQ(row, c)
		}
		g.PREFETCHT0(Mem{Base: c})
	}
}
