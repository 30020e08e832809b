package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/rayo-go/rayo/gguf/block"
)

// dequantize writes the function that makes whole blocks float32.
func (g *gen) dequantize(f block.Format) {
	name := "dequantize" + f.String() + g.name
	g.function(name, "func(dst *float32, src *byte, blocks int)", name+" is a dequantizeFunc of "+f.String()+".")
	dst := g.Load(g.Param("dst"), g.GP64()).(reg.GPVirtual)
	g.sink = func(v reg.VecVirtual, i int) { g.VMOVUPS(v, Mem{Base: dst, Disp: 4 * i}) }
	g.loop(f, dst)
	g.VZEROUPPER()
	g.RET()
}

// sums are the accumulators of a product: a block of 32 elements has two or
// four vectors, and an addition takes four cycles.
const sums = 4

// dot writes the function that multiplies whole blocks by as many numbers.
func (g *gen) dot(f block.Format) {
	name := "dot" + f.String() + g.name
	g.function(name, "func(x *float32, src *byte, blocks int) float32", name+" is a dotBlocksFunc of "+f.String()+".")
	x := g.Load(g.Param("x"), g.GP64()).(reg.GPVirtual)
	var acc [sums]reg.VecVirtual
	for i := range acc {
		acc[i] = g.vec()
		g.VXORPS(acc[i], acc[i], acc[i])
	}
	next := 0
	g.sink = func(v reg.VecVirtual, i int) {
		g.VFMADD231PS(Mem{Base: x, Disp: 4 * i}, v, acc[next%sums])
		next++
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

// loop goes over the blocks, of which there is one at least, while numbers
// advances by their elements.
func (g *gen) loop(f block.Format, numbers reg.GPVirtual) {
	g.src = g.Load(g.Param("src"), g.GP64()).(reg.GPVirtual)
	left := g.Load(g.Param("blocks"), g.GP64())
	body := g.setup(f)
	g.Label("next")
	body()
	g.ADDQ(I32(f.Bytes()), g.src)
	g.ADDQ(I32(4*f.Elements()), numbers)
	g.DECQ(left)
	g.JNE(LabelRef("next"))
}
