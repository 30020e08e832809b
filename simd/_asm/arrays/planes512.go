package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// planes512 writes the kernels that interleave 2 to 4 planes, or the reverse: those that move bytes and those that move words.
func (g *gen) planes512() {
	for _, planes := range []int{2, 3, 4} {
		g.mixPlanes512(planes, false)
		g.mixPlanes512(planes, true)
	}
}

// mixPlanes512 writes the kernel for a number of planes. A step reads a vector of each and writes as many.
func (g *gen) mixPlanes512(planes int, words bool) {
	kind := "Bytes"
	two, one, blend := g.VPERMI2B, g.VPERMB, g.VMOVDQU8
	if words {
		kind, two, one, blend = "Words", g.VPERMI2D, g.VPERMD, g.VMOVDQA32
	}
	name := fmt.Sprintf("mix%s%dAVX512", kind, planes)
	g.function(name, "func(dst, x, tables *byte, ds, dstep, xs, xstep, steps int)",
		fmt.Sprintf("%s reads %d vectors xs bytes apart and writes as many vectors ds bytes apart, for each step; the next ones are xstep and dstep bytes", name, planes),
		"further on. The tables are two vectors of indices for each result: into the first two vectors, and into the others; then masks of the elements of each",
		"result that are from the others.")
	dst, x, ds, dstep, xs, xstep, steps, tables := g.param("dst"), g.param("x"), g.param("ds"), g.param("dstep"), g.param("xs"), g.param("xstep"), g.param("steps"), g.param("tables")
	low, high, masks, in := make([]reg.VecVirtual, planes), make([]reg.VecVirtual, planes), make([]reg.Register, planes), make([]reg.VecVirtual, planes)
	for i := range planes {
		low[i], high[i], in[i] = g.ZMM(), g.ZMM(), g.ZMM()
		g.VMOVDQU64(Mem{Base: tables, Disp: 2 * lineBytes * i}, low[i])
		if planes > 2 {
			masks[i] = g.K()
			g.VMOVDQU64(Mem{Base: tables, Disp: 2*lineBytes*i + lineBytes}, high[i])
			g.KMOVQ(Mem{Base: tables, Disp: 2*lineBytes*planes + 8*i}, masks[i])
		}
	}
	p := g.GP64()
	g.Label("step")
	g.MOVQ(x, p)
	for i := range planes {
		g.VMOVDQU64(Mem{Base: p}, in[i])
		g.ADDQ(xs, p)
	}
	g.MOVQ(dst, p)
	for i := range planes {
		a, b := g.ZMM(), g.ZMM()
		g.VMOVDQA64(low[i], a)
		two(in[1], in[0], a)
		switch planes {
		case 3:
			one(in[2], high[i], masks[i], a)
		case 4:
			g.VMOVDQA64(high[i], b)
			two(in[3], in[2], b)
			blend(b, masks[i], a)
		}
		g.VMOVDQU64(a, Mem{Base: p})
		g.PREFETCHT0(Mem{Base: p, Disp: aheadOfStore})
		g.ADDQ(ds, p)
	}
	g.ADDQ(xstep, x)
	g.ADDQ(dstep, dst)
	g.DECQ(steps)
	g.JNE(LabelRef("step"))
	g.ret()
}
