package main

import (
	"math"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// chains is the number of accumulators of a fold, which hide the latency of a step.
const chains = 4

// foldRows writes the kernel that folds rows. next combines a vector with an accumulator, and join combines two accumulators.
// identity and none are elements that do not change an accumulator of join and of next.
func (g *gen) foldRows(name string, identity, none uint32, next func(acc, v reg.VecVirtual), join func(ops ...Op)) {
	g.function(name, "func(dst, x *uint32, rows, cols int)", name+" sets dst[i] to the combination of the elements of row i of x. There is at least one row and one column.")
	dst, x, rows, cols := g.param("dst"), g.param("x"), g.param("rows"), g.param("cols")
	mask, fill, start, n := g.tailMask(cols), g.splat(none), g.splat(identity), g.GP64()
	var acc [chains]reg.VecVirtual
	for i := range acc {
		acc[i] = g.YMM()
	}
	v := [2]reg.VecVirtual{g.YMM(), g.YMM()}
	g.Label("row")
	for i := range acc {
		g.VMOVDQA(start, acc[i])
	}
	g.MOVQ(cols, n)
	g.SUBQ(I32(lanes*chains), n)
	g.JLT(LabelRef("few"))
	g.Label("loop")
	for i := range acc {
		g.VMOVDQU(Mem{Base: x, Disp: 4 * lanes * i}, v[i%2])
		next(acc[i], v[i%2])
	}
	g.ADDQ(I32(4*lanes*chains), x)
	g.SUBQ(I32(lanes*chains), n)
	g.JGE(LabelRef("loop"))
	for i := 1; i < chains; i++ {
		join(acc[i], acc[0], acc[0])
	}
	g.Label("few")
	g.ADDQ(I32(lanes*(chains-1)), n)
	g.JLT(LabelRef("tail"))
	g.Label("rest")
	g.VMOVDQU(Mem{Base: x}, v[0])
	next(acc[0], v[0])
	g.ADDQ(I32(4*lanes), x)
	g.SUBQ(I32(lanes), n)
	g.JGE(LabelRef("rest"))
	g.Label("tail")
	g.ADDQ(I32(lanes), n)
	g.JEQ(LabelRef("join"))
	g.VMASKMOVPS(Mem{Base: x}, mask, v[0])
	g.VBLENDVPS(mask, v[0], fill, v[0])
	next(acc[0], v[0])
	g.LEAQ(Mem{Base: x, Index: n, Scale: 4}, x)
	g.Label("join")
	a, b := acc[0].AsX(), v[0].AsX()
	g.VEXTRACTI128(U8(1), acc[0], b)
	join(b, a, a)
	for _, order := range []uint8{0x4e, 0xb1} {
		g.VPSHUFD(U8(order), a, b)
		join(b, a, a)
	}
	g.VMOVD(a, Mem{Base: dst})
	g.ADDQ(U8(4), dst)
	g.DECQ(rows)
	g.JNE(LabelRef("row"))
	g.ret()
}

// words writes the folds of integers, the product of floats, and the folds that count.
func (g *gen) words() {
	for _, k := range []struct {
		name     string
		identity uint32
		join     func(ops ...Op)
	}{
		{"foldAddAVX2", 0, g.VPADDD},
		{"foldMulAVX2", 1, g.VPMULLD},
		{"foldMulF32AVX2", math.Float32bits(1), g.VMULPS},
		{"foldMaxI32AVX2", 1 << 31, g.VPMAXSD},
		{"foldMinI32AVX2", 1<<31 - 1, g.VPMINSD},
		{"foldMaxU32AVX2", 0, g.VPMAXUD},
		{"foldMinU32AVX2", 1<<32 - 1, g.VPMINUD},
	} {
		g.foldRows(k.name, k.identity, k.identity, func(acc, v reg.VecVirtual) { k.join(v, acc, acc) }, k.join)
	}
	// A comparison gives -1 for a zero, so these kernels return minus the number of zeros.
	for _, k := range []struct {
		name   string
		floats bool // -0 is 0
	}{{"foldZerosAVX2", false}, {"foldFloatZerosAVX2", true}} {
		g.foldRows(k.name, 0, 1, func(acc, v reg.VecVirtual) {
			zero := g.YMM()
			g.VPXOR(zero, zero, zero)
			if k.floats {
				g.VPADDD(v, v, v)
			}
			g.VPCMPEQD(zero, v, v)
			g.VPADDD(v, acc, acc)
		}, g.VPADDD)
	}
	g.indexWord()
	g.nonzeroBytes()
}

// indexWord writes the kernel that searches for an element.
func (g *gen) indexWord() {
	g.function("indexWordAVX2", "func(x *uint32, n int, v uint32) int",
		"indexWordAVX2 returns the index of the first of n elements that equals v, or n. n is a positive multiple of 8.")
	x, n := g.Load(g.Param("x"), g.GP64()), g.Load(g.Param("n"), g.GP64())
	want, v, i, mask, next := g.YMM(), g.YMM(), g.GP64(), g.GP64(), g.GP64()
	a, err := g.Param("v").Resolve()
	if err != nil {
		panic(err)
	}
	g.VBROADCASTSS(a.Addr, want)
	g.XORQ(i, i)
	some := [chains]reg.VecVirtual{v, g.YMM(), g.YMM(), g.YMM()}
	g.Label("chains")
	g.LEAQ(Mem{Base: i, Disp: lanes * chains}, next)
	g.CMPQ(next, n)
	g.JGT(LabelRef("loop"))
	for k := range some {
		g.VPCMPEQD(Mem{Base: x, Index: i, Scale: 4, Disp: 4 * lanes * k}, want, some[k])
	}
	g.VPOR(some[0], some[1], some[1])
	g.VPOR(some[2], some[3], some[3])
	g.VPOR(some[1], some[3], some[3])
	g.VPTEST(some[3], some[3])
	g.JNZ(LabelRef("loop"))
	g.MOVQ(next, i)
	g.CMPQ(i, n)
	g.JLT(LabelRef("chains"))
	g.JMP(LabelRef("done"))
	g.Label("loop")
	g.VPCMPEQD(Mem{Base: x, Index: i, Scale: 4}, want, v)
	g.VMOVMSKPS(v, mask.As32())
	g.TESTQ(mask, mask)
	g.JNZ(LabelRef("found"))
	g.ADDQ(U8(lanes), i)
	g.CMPQ(i, n)
	g.JLT(LabelRef("loop"))
	g.JMP(LabelRef("done"))
	g.Label("found")
	g.TZCNTQ(mask, mask)
	g.ADDQ(mask, i)
	g.Label("done")
	g.Store(i, g.ReturnIndex(0))
	g.ret()
}

// nonzeroBytes writes the kernel that counts nonzero bytes: it adds ones, masked by a comparison with 0.
func (g *gen) nonzeroBytes() {
	g.function("nonzeroBytesAVX2", "func(x *uint8, n int) int",
		"nonzeroBytesAVX2 returns how many of n elements are not 0. n is a positive multiple of 32.")
	x, n := g.Load(g.Param("x"), g.GP64()), g.Load(g.Param("n"), g.GP64())
	zero, ones, sum, v := g.YMM(), g.splat(0x01010101), g.YMM(), g.YMM()
	g.VPXOR(zero, zero, zero)
	g.VPXOR(sum, sum, sum)
	g.Label("loop")
	g.VPCMPEQB(Mem{Base: x}, zero, v)
	g.VPANDN(ones, v, v)
	g.VPSADBW(zero, v, v)
	g.VPADDQ(v, sum, sum)
	g.ADDQ(I32(32), x)
	g.SUBQ(I32(32), n)
	g.JNZ(LabelRef("loop"))
	g.VEXTRACTI128(U8(1), sum, v.AsX())
	g.VPADDQ(v.AsX(), sum.AsX(), sum.AsX())
	g.VPSHUFD(U8(0x4e), sum.AsX(), v.AsX())
	g.VPADDQ(v.AsX(), sum.AsX(), sum.AsX())
	r := g.GP64()
	g.VMOVQ(sum.AsX(), r)
	g.Store(r, g.ReturnIndex(0))
	g.ret()
}

// scanWords writes the kernel of running sums of integers. In each half of a vector, elements are added to those one place
// and two places up; then the last sum of the lower half is added to the upper half, and the sum before to all.
func (g *gen) scanWords() {
	const name = "scanAddAVX2"
	g.function(name, "func(dst, x *uint32, n int, before uint32) uint32",
		name+" sets dst[i] to before plus the sum of x[:i+1] and returns the last element of dst. n is positive. dst may be x.")
	load := func(name string) reg.GPVirtual { return g.Load(g.Param(name), g.GP64()).(reg.GPVirtual) }
	dst, x, n := load("dst"), load("x"), load("n")
	sum := g.Load(g.Param("before"), g.GP32()).(reg.GPVirtual)
	v, w, carry, low := g.YMM(), g.YMM(), g.YMM(), g.YMM()
	g.VMOVD(sum, carry.AsX())
	g.VPBROADCASTD(carry.AsX(), carry)
	last := g.YMM()
	g.VPCMPEQD(last, last, last)
	g.VPSRLD(U8(29), last, last) // 7 in each lane
	g.SUBQ(U8(lanes), n)
	g.JLT(LabelRef("tail"))
	g.Label("loop")
	g.VMOVDQU(Mem{Base: x}, v)
	for _, bytes := range []uint8{4, 8} {
		g.VPSLLDQ(U8(bytes), v, w)
		g.VPADDD(w, v, v)
	}
	g.VPSHUFD(U8(0xff), v, low)
	g.VPERM2I128(U8(0x08), low, low, low) // 0 in the lower half
	g.VPADDD(low, v, v)
	g.VPADDD(carry, v, w)
	g.VMOVDQU(w, Mem{Base: dst})
	g.VPERMD(v, last, v)
	g.VPADDD(v, carry, carry)
	g.ADDQ(U8(4*lanes), x)
	g.ADDQ(U8(4*lanes), dst)
	g.SUBQ(U8(lanes), n)
	g.JGE(LabelRef("loop"))
	g.VMOVD(carry.AsX(), sum)
	g.Label("tail")
	g.ADDQ(U8(lanes), n)
	g.JEQ(LabelRef("end"))
	g.Label("one")
	g.ADDL(Mem{Base: x}, sum)
	g.MOVL(sum, Mem{Base: dst})
	g.ADDQ(U8(4), x)
	g.ADDQ(U8(4), dst)
	g.DECQ(n)
	g.JNZ(LabelRef("one"))
	g.Label("end")
	g.Store(sum, g.ReturnIndex(0))
	g.ret()
}

// scanShortRows writes the kernel of running sums of rows of up to a vector. It stores a whole vector for each row, and the next
// rows overwrite the excess.
func (g *gen) scanShortRows() {
	const name = "scanShortRowsAVX2"
	g.function(name, "func(dst, x *uint32, rows, cols int)",
		name+" sets each element of dst to the sum of the elements of its row up to it. cols is at most 8. It reads and writes 8",
		"elements from the first one of each row on; dst must not overlap x.")
	dst, x, rows, cols := g.param("dst"), g.param("x"), g.param("rows"), g.param("cols")
	v, w := g.YMM(), g.YMM()
	g.SHLQ(U8(2), cols)
	g.Label("row")
	g.VMOVDQU(Mem{Base: x}, v)
	for _, bytes := range []uint8{4, 8} {
		g.VPSLLDQ(U8(bytes), v, w)
		g.VPADDD(w, v, v)
	}
	g.VPSHUFD(U8(0xff), v, w)
	g.VPERM2I128(U8(0x08), w, w, w) // 0 in the lower half
	g.VPADDD(w, v, v)
	g.VMOVDQU(v, Mem{Base: dst})
	g.ADDQ(cols, x)
	g.ADDQ(cols, dst)
	g.DECQ(rows)
	g.JNE(LabelRef("row"))
	g.ret()
}
