package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// countedValues is the number of values that one call of sortCountAVX512 counts.
const countedValues = 8

// countEqual writes the kernel that counts how often some values occur, in one pass and without branches.
func (g *gen) countEqual() {
	g.function("sortCountAVX512", "func(counts, values, src *uint32, n int)",
		"sortCountAVX512 adds the numbers of the elements of src that equal each of 8 values to counts. n is a positive multiple of 16.")
	counts, values, src, n := g.Load(g.Param("counts"), g.GP64()), g.Load(g.Param("values"), g.GP64()), g.Load(g.Param("src"), g.GP64()), g.Load(g.Param("n"), g.GP64())
	one, v := g.ZMM(), g.ZMM()
	var value, count [countedValues]reg.VecVirtual
	g.VPTERNLOGD(U8(0xff), one, one, one)
	for i := range value {
		value[i], count[i] = g.ZMM(), g.ZMM()
		g.VBROADCASTSS(Mem{Base: values, Disp: 4 * i}, value[i])
		g.VPXORD(count[i], count[i], count[i])
	}
	g.Label("loop")
	g.VMOVDQU32(Mem{Base: src}, v)
	for i := range value {
		k := g.K()
		g.VPCMPEQD(v, value[i], k)
		g.VPSUBD(one, count[i], k, count[i]) // subtracts -1
	}
	g.ADDQ(I32(4*lanes512), src)
	g.SUBQ(I8(lanes512), n)
	g.JNZ(LabelRef("loop"))
	half, quarter, sum := g.YMM(), g.XMM(), g.GP32()
	for i, c := range count {
		g.VEXTRACTI32X8(U8(1), c, half)
		g.VPADDD(half, c.AsY(), half)
		g.VEXTRACTI128(U8(1), half, quarter)
		g.VPADDD(half.AsX(), quarter, quarter)
		g.VPSHUFD(U8(0x4e), quarter, half.AsX())
		g.VPADDD(half.AsX(), quarter, quarter)
		g.VPSHUFD(U8(0xb1), quarter, half.AsX())
		g.VPADDD(half.AsX(), quarter, quarter)
		g.VMOVD(quarter, sum)
		g.ADDL(sum, Mem{Base: counts, Disp: 4 * i})
	}
	g.ret()
}
