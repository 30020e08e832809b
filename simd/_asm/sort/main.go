// Command sort writes the AVX2 assembly of the sorts of package simd: keys of elements and back,
// partitions by a pivot, and networks for few keys.
//
// Run it through go generate in folder simd.
package main

import (
	"fmt"
	"os"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/rayo-go/rayo/simd/asm/amd64file"
)

const lanes = 8

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sort DIR")
		os.Exit(2)
	}
	g := &gen{build.NewContext()}
	g.ConstraintExpr("amd64,!noasm")
	g.flip()
	g.floatKeys()
	g.floatBits()
	g.partition()
	for _, rows := range []int{4, 8, 16} {
		g.network(rows)
	}
	if err := amd64file.Write(os.Args[1], "sort_avx2_amd64", "go run ./sort", g.Context); err != nil {
		fmt.Fprintln(os.Stderr, "sort:", err)
		os.Exit(1)
	}
}

type gen struct{ *build.Context }

func (g *gen) function(name, signature string, doc ...string) {
	g.Function(name)
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.SignatureExpr(signature)
	g.Doc(doc...)
}

func (g *gen) ret() {
	g.VZEROUPPER()
	g.RET()
}

// global returns a static constant.
func (g *gen) global(name string, words ...uint64) Mem {
	m := g.StaticGlobal(name)
	g.DataAttributes(attr.RODATA | attr.NOPTR)
	for i, w := range words {
		g.AddDatum(8*i, U64(w))
	}
	return m
}

// splat returns a register with a constant in each lane.
func (g *gen) splat(bits uint32) reg.VecVirtual {
	v, w := g.YMM(), g.GP32()
	g.MOVL(U32(bits), w)
	g.VMOVD(w, v.AsX())
	g.VPBROADCASTD(v.AsX(), v)
	return v
}

// each writes a loop over vectors of src, in which body makes v into what goes to dst.
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
	g.function("sortFlipAVX2", eachSignature, "sortFlipAVX2 inverts the bits flip of each element.")
	g.each(func(v, flip reg.VecVirtual) { g.VPXOR(flip, v, v) })
	g.ret()
}

// floatKeys makes floats into keys as floatKey does.
func (g *gen) floatKeys() {
	g.function("sortFloatKeysAVX2", eachSignature+" uint32",
		"sortFloatKeysAVX2 sets dst to the keys of floats, their bits flip inverted. The result is not 0 if",
		"-0 or a NaN is among them.")
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

// floatBits makes keys into floats as wordKey.bits does.
func (g *gen) floatBits() {
	g.function("sortFloatBitsAVX2", eachSignature,
		"sortFloatBitsAVX2 sets dst to the bits of the floats with keys src, the bits flip of which are inverted.")
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

// partition compresses vector after vector: the keys up to the pivot go to the lower end of
// the free part of dst, the others to the upper end. The free part is as long as what is left to
// read, so that a whole vector fits at either end.
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
	g.function("sortPartitionAVX2", "func(dst, src *uint32, n int, pivot uint32) int",
		"sortPartitionAVX2 sets dst to the n keys of src, those up to pivot first, and returns how many these are.",
		"n is a positive multiple of 8.")
	dst, src, n := g.Load(g.Param("dst"), g.GP64()), g.Load(g.Param("src"), g.GP64()), g.Load(g.Param("n"), g.GP64())
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
	g.VMOVDQU(v, Mem{Base: at, Index: n, Scale: 4, Disp: -4 * lanes})
	g.POPCNTL(mask.As32(), mask.As32())
	g.LEAQ(Mem{Base: at, Index: mask, Scale: 4}, at)
	g.ADDQ(I32(4*lanes), src)
	g.SUBQ(I32(lanes), n)
	g.JNZ(LabelRef("loop"))
	g.SUBQ(dst, at)
	g.SHRQ(U8(2), at)
	g.Store(at, g.ReturnIndex(0))
	g.ret()
}
