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
	g.split()
	g.partition512()
	g.countEqual()
	g.divideKeys512(false)
	g.divideKeys512(true)
	g.pivot512()
	for _, size := range [][2]int{{4, 1}, {8, 65}, {12, 129}, {16, 193}} { // vectors, and the smallest number of keys
		g.network512(size[0], size[1])
	}
	g.mapRowsKernels()
	g.turnRows512(16)
	g.turnRows512(4)
	g.strip512(16)
	g.strip512(4)
	g.stripColumns512()
	g.join512(false)
	g.join512(true)
	g.lines512()
	g.planes512()
	return g
}

// split writes the kernel that divides keys by a pivot: some stay, and others move to another array. It compresses each vector
// twice, and stores whole vectors, because the elements behind the keys are free in both arrays.
func (g *gen) split() {
	g.function("sortSplitAVX512", "func(keep, move, src *uint32, n int, pivot, invert uint32) int",
		"sortSplitAVX512 divides the n keys of src: those greater than pivot go to move, and the others to keep. With the lower 16 bits of",
		"invert set it is the reverse. It returns the number of keys at keep. keep may be at or before src. n is positive.")
	keep, move, src, n := g.Load(g.Param("keep"), g.GP64()), g.Load(g.Param("move"), g.GP64()), g.Load(g.Param("src"), g.GP64()), g.GP64()
	g.Load(g.Param("n"), n)
	pivot, at, count, invert := g.ZMM(), g.GP64(), g.GP64(), g.K()
	a, err := g.Param("pivot").Resolve()
	if err != nil {
		panic(err)
	}
	g.VBROADCASTSS(a.Addr, pivot)
	g.KMOVW(g.Load(g.Param("invert"), g.GP32()), invert)
	g.MOVQ(keep, at)
	stay, leave, have := g.K(), g.K(), g.K()
	// advance moves the ends of both arrays behind the keys of a vector.
	advance := func() {
		g.KMOVW(stay, count.As32())
		g.POPCNTL(count.As32(), count.As32())
		g.LEAQ(Mem{Base: at, Index: count, Scale: 4}, at)
	}
	g.SUBQ(I8(2*lanes512), n)
	g.JL(LabelRef("rest"))
	g.Label("loop")
	v := [2]reg.VecVirtual{g.ZMM(), g.ZMM()}
	for i := range v {
		g.VMOVDQU32(Mem{Base: src, Disp: 4 * lanes512 * i}, v[i])
	}
	for i := range v {
		kept, moved := g.ZMM(), g.ZMM()
		g.VPCMPUD(U8(2), pivot, v[i], stay) // up to pivot
		g.KXORW(invert, stay, stay)
		g.KNOTW(stay, leave)
		g.VPCOMPRESSD_Z(v[i], stay, kept)
		g.VPCOMPRESSD_Z(v[i], leave, moved)
		g.VMOVDQU32(kept, Mem{Base: at})
		g.VMOVDQU32(moved, Mem{Base: move})
		advance()
		g.SHLQ(U8(2), count)
		g.SUBQ(count, move)
		g.ADDQ(I8(4*lanes512), move)
	}
	g.ADDQ(I32(2*4*lanes512), src)
	g.SUBQ(I8(2*lanes512), n)
	g.JGE(LabelRef("loop"))
	g.Label("rest")
	g.ADDQ(I8(2*lanes512), n)
	g.JZ(LabelRef("done"))
	g.Label("tail") // up to a vector with masks
	bits := g.GP32()
	g.MOVL(U32(1<<lanes512-1), bits)
	g.BZHIL(n.As32(), bits, bits)
	g.KMOVW(bits, have)
	w := g.ZMM()
	g.VMOVDQU32_Z(Mem{Base: src}, have, w)
	g.VPCMPUD(U8(2), pivot, w, stay)
	g.KXORW(invert, stay, stay)
	g.KANDNW(have, stay, leave)
	g.KANDW(have, stay, stay)
	g.VPCOMPRESSD(w, stay, Mem{Base: at})
	g.VPCOMPRESSD(w, leave, Mem{Base: move})
	advance()
	g.KMOVW(leave, count.As32())
	g.POPCNTL(count.As32(), count.As32())
	g.LEAQ(Mem{Base: move, Index: count, Scale: 4}, move)
	g.ADDQ(I32(4*lanes512), src)
	g.SUBQ(I8(lanes512), n)
	g.JG(LabelRef("tail"))
	g.Label("done")
	g.SUBQ(keep, at)
	g.SHRQ(U8(2), at)
	g.Store(at, g.ReturnIndex(0))
	g.ret()
}
