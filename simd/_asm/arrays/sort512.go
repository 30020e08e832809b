package main

import (
	"github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const lanes512 = 16

// avx512 returns the kernels for AVX-512.
func avx512() *gen {
	g := &gen{Context: build.NewContext()}
	g.ConstraintExpr("amd64,!noasm")
	g.partition512()
	for _, n := range []int{4, 8, 16} {
		g.network512(n)
	}
	return g
}

// partition512 writes the kernel of partition with compressions. Keys up to pivot go to the lower end as a whole vector: the
// elements behind them are free. The other keys are stored with a mask, because keys of earlier vectors follow them.
func (g *gen) partition512() {
	g.function("sortPartitionAVX512", "func(dst, src *uint32, free, n int, pivot uint32) int",
		"sortPartitionAVX512 is sortPartitionAVX2 with compressions.")
	dst, src, end, n := g.Load(g.Param("dst"), g.GP64()), g.Load(g.Param("src"), g.GP64()), g.Load(g.Param("free"), g.GP64()), g.Load(g.Param("n"), g.GP64())
	pivot, v, low, high := g.ZMM(), g.ZMM(), g.ZMM(), g.ZMM()
	a, err := g.Param("pivot").Resolve()
	if err != nil {
		panic(err)
	}
	g.VPBROADCASTD(a.Addr, pivot)
	at, all, count, mask := g.GP64(), g.GP32(), g.GP64(), g.GP32()
	lower, upper, stored := g.K(), g.K(), g.K()
	g.MOVQ(dst, at)
	g.LEAQ(Mem{Base: dst, Index: end, Scale: 4}, end)
	g.MOVL(U32(1<<lanes512-1), all)
	g.SUBQ(I8(lanes512), n)
	g.JL(LabelRef("tail"))
	g.Label("loop")
	g.VMOVDQU32(Mem{Base: src}, v)
	g.VPCMPUD(U8(2), pivot, v, lower) // up to pivot
	g.KNOTW(lower, upper)
	g.compress(v, lower, low)
	g.compress(v, upper, high)
	g.KMOVW(lower, count.As32())
	g.POPCNTL(count.As32(), count.As32())
	g.VMOVDQU32(low, Mem{Base: at})
	g.LEAQ(Mem{Base: at, Index: count, Scale: 4}, at)
	g.LEAQ(Mem{Base: end, Index: count, Scale: 4, Disp: -4 * lanes512}, end)
	g.SHRXL(count.As32(), all, mask)
	g.KMOVW(mask, stored)
	g.VMOVDQU32(high, stored, Mem{Base: end})
	g.ADDQ(I32(4*lanes512), src)
	g.SUBQ(I8(lanes512), n)
	g.JGE(LabelRef("loop"))
	g.Label("tail")
	g.ADDQ(I8(lanes512), n)
	g.JZ(LabelRef("done"))
	// Half a vector.
	half := g.YMM()
	g.VMOVDQU32(Mem{Base: src}, half)
	g.VPCMPUD(U8(2), pivot.AsY(), half, lower)
	g.KMOVW(lower, count.As32())
	g.POPCNTL(count.As32(), count.As32())
	g.VPCOMPRESSD(half, lower, Mem{Base: at})
	g.LEAQ(Mem{Base: at, Index: count, Scale: 4}, at)
	g.LEAQ(Mem{Base: end, Index: count, Scale: 4, Disp: -4 * lanes}, end)
	g.KNOTB(lower, upper)
	g.VPCOMPRESSD(half, upper, Mem{Base: end})
	g.Label("done")
	g.SUBQ(dst, at)
	g.SHRQ(U8(2), at)
	g.Store(at, g.ReturnIndex(0))
	g.ret()
}

// compress moves the lanes of v in k to the first lanes of to, and sets the other lanes to 0.
func (g *gen) compress(v reg.Register, k, to reg.Register) { g.VPCOMPRESSD_Z(v, k, to) }
