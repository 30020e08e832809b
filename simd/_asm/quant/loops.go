package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/rayo-go/rayo/gguf/block"
)

// dequantize writes the function that converts whole blocks to float32. With stream it uses
// non-temporal stores; dst must be aligned to vectors.
func (g *gen) dequantize(f block.Format, stream bool) {
	name, store := "dequantize"+f.String()+g.name, func(v reg.VecVirtual, m Mem) { g.VMOVUPS(v, m) }
	if stream {
		name, store = "dequantize"+f.String()+"Stream"+g.name, func(v reg.VecVirtual, m Mem) { g.VMOVNTPS(v, m) }
	}
	g.function(name, "func(dst *float32, src *byte, blocks int)", name+" is a dequantizeFunc of "+f.String()+".")
	dst := g.Load(g.Param("dst"), g.GP64()).(reg.GPVirtual)
	// Products and differences are rounded separately, as in package block.
	g.emit = func(scale, min reg.Register, terms ...term) {
		for _, t := range terms {
			g.VMULPS(scale, t.v, t.v)
			switch {
			case min != nil && offsets(f):
				g.VADDPS(min, t.v, t.v)
			case min != nil:
				g.VSUBPS(min, t.v, t.v)
			}
			store(t.v, Mem{Base: dst, Disp: 4 * t.at})
		}
	}
	g.minima = g.spread
	g.offset = func(v reg.VecVirtual) reg.Register { return v }
	g.ahead = 0
	if stream {
		g.ahead = streamAhead
	}
	g.loop(f, dst)
	g.ahead = 0
	if stream {
		g.SFENCE()
	}
	g.VZEROUPPER()
	g.RET()
}

// streamAhead is the prefetch distance, in bytes, of kernels with non-temporal stores.
const streamAhead = 2048

// accumulators is the number of accumulators of a product, because an addition has a latency of four cycles.
const accumulators = 4

// dot writes the function that returns the dot product of whole blocks and numbers. It adds the
// products of a group before it scales them. It multiplies the minimum of a group by the sum of the
// group's numbers, which the caller passes.
func (g *gen) dot(f block.Format) {
	name := "dot" + f.String() + g.name
	g.function(name, "func(x, sums *float32, src *byte, blocks int) float32", name+" is a dotBlocksFunc of "+f.String()+".")
	x := g.Load(g.Param("x"), g.GP64()).(reg.GPVirtual)
	var acc [accumulators]reg.VecVirtual
	for i := range acc {
		acc[i] = g.vec()
		g.VXORPS(acc[i], acc[i], acc[i])
	}
	next := 0
	g.emit = func(scale, _ reg.Register, terms ...term) {
		sum := g.vec()
		for i, t := range terms {
			m := Mem{Base: x, Disp: 4 * t.at}
			if i == 0 {
				g.VMULPS(m, t.v, sum)
			} else {
				g.VFMADD231PS(m, t.v, sum)
			}
		}
		g.VFMADD231PS(scale, sum, acc[next%accumulators])
		next++
	}
	var below reg.VecVirtual // the sum of the products of minima, which is subtracted, or of offsets
	var sums reg.GPVirtual
	g.minima = func(v reg.VecVirtual) func(int) reg.Register {
		g.VFNMADD231PS(Mem{Base: sums}, v, below)
		g.ADDQ(I32(32), sums)
		return func(int) reg.Register { return nil }
	}
	g.offset = func(v reg.VecVirtual) reg.Register {
		s := g.XMM()
		g.VMOVSS(Mem{Base: sums}, s)
		g.VFMADD231PS(s.AsY(), v.AsY(), below)
		g.ADDQ(I32(4), sums)
		return nil
	}
	if f == block.Q4_K || f == block.Q5_K || offsets(f) {
		below = g.YMM()
		g.VXORPS(below, below, below)
		sums = g.Load(g.Param("sums"), g.GP64()).(reg.GPVirtual)
	}
	g.loop(f, x)
	g.VADDPS(acc[1], acc[0], acc[0])
	g.VADDPS(acc[3], acc[2], acc[2])
	g.VADDPS(acc[2], acc[0], acc[0])
	y := acc[0].AsY()
	if g.lanes == 16 {
		upper := g.YMM()
		g.VEXTRACTF64X4(U8(1), acc[0], upper)
		g.VADDPS(upper, y, y)
	}
	if below != nil {
		g.VADDPS(below, y, y)
	}
	s, t := acc[0].AsX(), g.XMM()
	g.VEXTRACTF128(U8(1), y, t)
	g.VADDPS(t, s, s)
	g.VPERMILPS(U8(0x0e), s, t)
	g.VADDPS(t, s, s)
	g.VMOVSHDUP(s, t)
	g.VADDSS(t, s, s)
	g.Store(s, g.ReturnIndex(0))
	g.VZEROUPPER()
	g.RET()
}

// spread stores a vector on the stack after the scales, and returns a function that broadcasts lane
// i.
func (g *gen) spread(v reg.VecVirtual) func(i int) reg.Register {
	g.VMOVUPS(v, g.scratch.Offset(32))
	return func(i int) reg.Register { return g.scale(8 + i) }
}

// loop writes the loop over at least one block. Each iteration advances numbers by the elements of a block.
func (g *gen) loop(f block.Format, numbers reg.GPVirtual) {
	g.src = g.Load(g.Param("src"), g.GP64()).(reg.GPVirtual)
	left := g.Load(g.Param("blocks"), g.GP64())
	body := g.setup(f)
	g.Label("next")
	if g.ahead > 0 {
		for at := 0; at < f.Bytes(); at += 64 {
			g.PREFETCHT0(Mem{Base: g.src, Disp: g.ahead + at})
		}
	}
	body()
	g.ADDQ(I32(f.Bytes()), g.src)
	g.ADDQ(I32(4*f.Elements()), numbers)
	g.DECQ(left)
	g.JNE(LabelRef("next"))
}
