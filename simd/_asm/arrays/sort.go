package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// each writes a loop over the vectors of src. body converts v in place; the loop stores it to dst.
func (g *gen) each(body func(v, flip reg.VecVirtual)) {
	dst, src, n := g.Load(g.Param("dst"), g.GP64()), g.Load(g.Param("src"), g.GP64()), g.Load(g.Param("n"), g.GP64())
	flip := g.YMM()
	a, err := g.Param("flip").Resolve()
	if err != nil {
		panic(err)
	}
	g.VBROADCASTSS(a.Addr, flip)
	v := g.YMM()
	g.Label("loop")
	g.VMOVDQU(Mem{Base: src}, v)
	body(v, flip)
	g.VMOVDQU(v, Mem{Base: dst})
	g.ADDQ(I32(4*lanes), src)
	g.ADDQ(I32(4*lanes), dst)
	g.SUBQ(I32(lanes), n)
	g.JNZ(LabelRef("loop"))
}

const eachSignature = "func(dst, src *uint32, n int, flip uint32)"

func (g *gen) flip() {
	g.function("sortFlipAVX2", eachSignature, "sortFlipAVX2 inverts the bits of each element that are set in flip.")
	g.each(func(v, flip reg.VecVirtual) { g.VPXOR(flip, v, v) })
	g.ret()
}

// floatKeys writes the kernel that converts floats to keys, like floatKey.
func (g *gen) floatKeys() {
	g.function("sortFloatKeysAVX2", eachSignature+" uint32",
		"sortFloatKeysAVX2 sets dst to the keys of floats, with the bits inverted that are set in flip. It returns 0",
		"only if no element is -0 or NaN.")
	top, zero, special := g.splat(1<<31), g.YMM(), g.YMM()
	g.VPXOR(zero, zero, zero)
	g.VPXOR(special, special, special)
	s, m := g.YMM(), g.YMM()
	g.each(func(v, flip reg.VecVirtual) {
		g.VPCMPEQD(top, v, s)
		g.VCMPPS(U8(3), v, v, m) // unordered
		g.VPOR(s, special, special)
		g.VPOR(m, special, special)
		g.VADDPS(zero, v, v) // -0 + 0 is +0
		g.VPSRAD(U8(31), v, s)
		g.VPOR(top, s, s)
		g.VPXOR(s, v, v)
		g.VPOR(m, v, v)
		g.VPXOR(flip, v, v)
	})
	r := g.GP32()
	g.VMOVMSKPS(special, r)
	g.Store(r, g.ReturnIndex(0))
	g.ret()
}

// floatBits writes the kernel that converts keys to floats, like wordKey.bits.
func (g *gen) floatBits() {
	g.function("sortFloatBitsAVX2", eachSignature,
		"sortFloatBitsAVX2 sets dst to the bits of floats. src has their keys, with the bits inverted that are set in flip.")
	top, ones, s := g.splat(1<<31), g.splat(1<<32-1), g.YMM()
	g.each(func(v, flip reg.VecVirtual) {
		g.VPXOR(flip, v, v)
		g.VPSRAD(U8(31), v, s)
		g.VPXOR(ones, s, s)
		g.VPOR(top, s, s)
		g.VPXOR(s, v, v)
	})
	g.ret()
}

// partition writes the kernel that partitions keys by a pivot, one vector at a time: keys up to the
// pivot go to the lower end of the free part of dst, the others to the upper end. The free part is
// as long as the unread keys, a multiple of a vector, so that a whole vector fits at either end.
func (g *gen) partition() {
	order := make([]uint64, 1<<lanes)
	for mask := range order {
		at := 0
		for _, bit := range []int{1, 0} {
			for i := range lanes {
				if mask>>i&1 == bit {
					order[mask] |= uint64(i) << at
					at += 8
				}
			}
		}
	}
	table := g.global("sortOrders", order...)
	g.function("sortPartitionAVX2", "func(dst, src *uint32, free, n int, pivot uint32) int",
		"sortPartitionAVX2 moves n keys of src to the two ends of the free elements at dst: keys up to pivot to the lower end.",
		"It returns the number of keys up to pivot. free and n are positive multiples of 8.")
	dst, src, free, n := g.Load(g.Param("dst"), g.GP64()), g.Load(g.Param("src"), g.GP64()), g.Load(g.Param("free"), g.GP64()), g.Load(g.Param("n"), g.GP64())
	pivot, v, m := g.YMM(), g.YMM(), g.YMM()
	a, err := g.Param("pivot").Resolve()
	if err != nil {
		panic(err)
	}
	g.VBROADCASTSS(a.Addr, pivot)
	at, mask, orders := g.GP64(), g.GP64(), g.GP64()
	g.LEAQ(table, orders)
	g.MOVQ(dst, at)
	g.Label("loop")
	g.VMOVDQU(Mem{Base: src}, v)
	g.VPMINUD(pivot, v, m)
	g.VPCMPEQD(v, m, m)
	g.VMOVMSKPS(m, mask.As32())
	g.VPMOVZXBD(Mem{Base: orders, Index: mask, Scale: 8}, m)
	g.VPERMD(v, m, v)
	g.VMOVDQU(v, Mem{Base: at})
	g.VMOVDQU(v, Mem{Base: at, Index: free, Scale: 4, Disp: -4 * lanes})
	g.POPCNTL(mask.As32(), mask.As32())
	g.LEAQ(Mem{Base: at, Index: mask, Scale: 4}, at)
	g.ADDQ(I32(4*lanes), src)
	g.SUBQ(I32(lanes), free)
	g.SUBQ(I32(lanes), n)
	g.JNZ(LabelRef("loop"))
	g.SUBQ(dst, at)
	g.SHRQ(U8(2), at)
	g.Store(at, g.ReturnIndex(0))
	g.ret()
}
