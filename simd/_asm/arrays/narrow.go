package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// weave writes the kernel that interleaves up to w columns to the rows of a matrix; w is 4 or 8.
// Each row is stored as w elements, and the next row overwrites the excess elements.
func (g *gen) weave(w int) {
	name := fmt.Sprintf("interleave%dAVX2", w)
	g.function(name, "func(dst *uint32, src *[8]*uint32, k, blocks int)",
		fmt.Sprintf("%s stores blocks of 8 rows of k elements. Element j of row i is element i of src[j]. The first", name),
		fmt.Sprintf("%d addresses of src must be valid. k is at most that number, and dst must have room for that number of elements in the last row.", w))
	from := g.addresses("src", w)
	dst, k, blocks, i := g.param("dst"), g.param("k"), g.param("blocks"), g.GP64()
	g.SHLQ(U8(2), k)
	g.XORQ(i, i)
	g.Label("block")
	var v []reg.VecVirtual
	for j := range w {
		v = append(v, g.YMM())
		g.VMOVUPS(Mem{Base: from[j], Index: i, Scale: 4}, v[j])
	}
	g.ADDQ(U8(lanes), i)
	if v = g.turn(v); w == 8 {
		for _, row := range v {
			g.VMOVUPS(row, Mem{Base: dst})
			g.ADDQ(k, dst)
		}
	} else {
		for half := range 2 {
			for _, row := range v {
				if half == 0 {
					g.VMOVUPS(row.AsX(), Mem{Base: dst})
				} else {
					g.VEXTRACTF128(U8(1), row, Mem{Base: dst})
				}
				g.ADDQ(k, dst)
			}
		}
	}
	g.DECQ(blocks)
	g.JNE(LabelRef("block"))
	g.ret()
}

// unweave writes the kernel that deinterleaves the columns of a matrix with up to w columns. It
// stores w columns, the last one first; for missing columns, callers pass the address of the last
// column, which is then overwritten.
func (g *gen) unweave(w int) {
	name := fmt.Sprintf("deinterleave%dAVX2", w)
	g.function(name, "func(dst *[8]*uint32, x *uint32, step, blocks int)",
		fmt.Sprintf("%s stores column j of a matrix at dst[j], in reverse order, for the first %d columns. The matrix has 8 rows for each", name, w),
		fmt.Sprintf("block, step elements apart. %d elements of each row are read.", w))
	to := g.addresses("dst", w)
	x, step, blocks, i := g.param("x"), g.param("step"), g.param("blocks"), g.GP64()
	g.SHLQ(U8(2), step)
	g.XORQ(i, i)
	g.Label("block")
	var v []reg.VecVirtual
	if w == 8 {
		for j := range w {
			v = append(v, g.YMM())
			g.VMOVUPS(Mem{Base: x}, v[j])
			g.ADDQ(step, x)
		}
	} else {
		later := g.GP64()
		g.LEAQ(Mem{Base: x, Index: step, Scale: 4}, later)
		for j := range w {
			v = append(v, g.YMM())
			g.VMOVUPS(Mem{Base: x}, v[j].AsX())
			g.VINSERTF128(U8(1), Mem{Base: later}, v[j], v[j])
			g.ADDQ(step, x)
			g.ADDQ(step, later)
		}
		g.MOVQ(later, x)
	}
	v = g.turn(v)
	for j := w - 1; j >= 0; j-- {
		g.VMOVUPS(v[j], Mem{Base: to[j], Index: i, Scale: 4})
	}
	g.ADDQ(U8(lanes), i)
	g.DECQ(blocks)
	g.JNE(LabelRef("block"))
	g.ret()
}

// quad transposes the matrices of 4 rows of 4 elements, one in each 128 bits of 4 registers. vec returns a register of their size.
func (g *gen) quad(v []reg.VecVirtual, vec func() reg.VecVirtual) []reg.VecVirtual {
	var t, u [4]reg.VecVirtual
	for j := range t {
		t[j], u[j] = vec(), vec()
	}
	g.VUNPCKLPS(v[1], v[0], t[0])
	g.VUNPCKHPS(v[1], v[0], t[1])
	g.VUNPCKLPS(v[3], v[2], t[2])
	g.VUNPCKHPS(v[3], v[2], t[3])
	g.VUNPCKLPD(t[2], t[0], u[0])
	g.VUNPCKHPD(t[2], t[0], u[1])
	g.VUNPCKLPD(t[3], t[1], u[2])
	g.VUNPCKHPD(t[3], t[1], u[3])
	return u[:]
}

// turn transposes 8 rows of 8 elements; or the two matrices of 4 rows of 4 in the halves of 4 registers.
func (g *gen) turn(v []reg.VecVirtual) []reg.VecVirtual {
	if len(v) == 4 {
		return g.quad(v, g.YMM)
	}
	a, b := g.quad(v[:4], g.YMM), g.quad(v[4:], g.YMM)
	low, high := make([]reg.VecVirtual, 4), make([]reg.VecVirtual, 4)
	for j := range 4 {
		low[j], high[j] = g.YMM(), g.YMM()
		g.VPERM2F128(U8(0x20), b[j], a[j], low[j])
		g.VPERM2F128(U8(0x31), b[j], a[j], high[j])
	}
	return append(low, high...)
}

// addresses loads the first n elements of an array of addresses; a parameter points to the array.
func (g *gen) addresses(name string, n int) []reg.GPVirtual {
	at := g.param(name)
	var p []reg.GPVirtual
	for j := range n {
		p = append(p, g.GP64())
		g.MOVQ(Mem{Base: at, Disp: 8 * j}, p[j])
	}
	return p
}

// param loads a parameter.
func (g *gen) param(name string) reg.GPVirtual {
	return g.Load(g.Param(name), g.GP64()).(reg.GPVirtual)
}

// rows writes the kernel that copies rows. The last two vectors of a row overlap. With non-temporal stores, a row consists of
// whole vectors.
func (g *gen) rows(past bool) {
	const signature = "func(dst, x *uint32, n, ds, ss, count int)"
	if past {
		g.function("copyRowsStreamAVX2", signature,
			"copyRowsStreamAVX2 is copyRowsAVX2 with non-temporal stores. n and ds are multiples of 8, and dst is aligned to 32 bytes.")
	} else {
		g.function("copyRowsAVX2", signature,
			"copyRowsAVX2 copies count rows of n elements, which are ss elements apart in x, to rows ds elements apart in dst. n is at least 8.")
	}
	store := func(v reg.VecVirtual, m Mem) {
		if past {
			g.VMOVNTDQ(v, m)
		} else {
			g.VMOVDQU(v, m)
		}
	}
	dst, x, n, ds, ss, count := g.param("dst"), g.param("x"), g.param("n"), g.param("ds"), g.param("ss"), g.param("count")
	i := g.GP64()
	g.SHLQ(U8(2), ds)
	g.SHLQ(U8(2), ss)
	g.Label("row")
	g.MOVQ(U32(4*lanes), i)
	g.CMPQ(i, n)
	g.JGT(LabelRef("vectors"))
	g.Label("four")
	var v []reg.VecVirtual
	for j := range 4 {
		v = append(v, g.YMM())
		g.VMOVDQU(Mem{Base: x, Index: i, Scale: 4, Disp: 4 * lanes * (j - 4)}, v[j])
	}
	for j := range 4 {
		store(v[j], Mem{Base: dst, Index: i, Scale: 4, Disp: 4 * lanes * (j - 4)})
	}
	g.ADDQ(U8(4*lanes), i)
	g.CMPQ(i, n)
	g.JLE(LabelRef("four"))
	g.Label("vectors")
	g.SUBQ(U8(3*lanes), i)
	g.CMPQ(i, n)
	g.JGT(LabelRef("rest"))
	g.Label("one")
	g.VMOVDQU(Mem{Base: x, Index: i, Scale: 4, Disp: -4 * lanes}, v[0])
	store(v[0], Mem{Base: dst, Index: i, Scale: 4, Disp: -4 * lanes})
	g.ADDQ(U8(lanes), i)
	g.CMPQ(i, n)
	g.JLE(LabelRef("one"))
	g.Label("rest")
	if !past {
		g.VMOVDQU(Mem{Base: x, Index: n, Scale: 4, Disp: -4 * lanes}, v[0])
		g.VMOVDQU(v[0], Mem{Base: dst, Index: n, Scale: 4, Disp: -4 * lanes})
	}
	g.ADDQ(ss, x)
	g.ADDQ(ds, dst)
	g.DECQ(count)
	g.JNE(LabelRef("row"))
	g.ret()
}

// weaveRows writes the kernel that joins rows of several arrays.
func (g *gen) weaveRows() {
	g.function("joinPiecesAVX2", "func(dst, parts *byte, n, count int)",
		"joinPiecesAVX2 writes count rows, which follow each other, to dst: each has one row of each of the n parts, each a JoinPart.",
		"It moves the parts behind the rows.")
	dst, parts, n, count := g.param("dst"), g.param("parts"), g.param("n"), g.param("count")
	p, left, x, size, i, v := g.GP64(), g.GP64(), g.GP64(), g.GP64(), g.GP64(), g.YMM()
	g.Label("row")
	g.MOVQ(parts, p)
	g.MOVQ(n, left)
	g.Label("part")
	g.MOVQ(Mem{Base: p}, x)
	g.ADDQ(Mem{Base: p, Disp: 8}, x)
	g.MOVQ(Mem{Base: p, Disp: 16}, size)
	g.MOVQ(U32(4*lanes), i)
	g.Label("vector")
	g.VMOVDQU(Mem{Base: x, Index: i, Scale: 1, Disp: -4 * lanes}, v)
	g.VMOVDQU(v, Mem{Base: dst, Index: i, Scale: 1, Disp: -4 * lanes})
	g.ADDQ(U8(4*lanes), i)
	g.CMPQ(i, size)
	g.JLE(LabelRef("vector"))
	g.VMOVDQU(Mem{Base: x, Index: size, Scale: 1, Disp: -4 * lanes}, v)
	g.VMOVDQU(v, Mem{Base: dst, Index: size, Scale: 1, Disp: -4 * lanes})
	g.ADDQ(size, dst)
	g.MOVQ(Mem{Base: p, Disp: 24}, i)
	g.ADDQ(i, Mem{Base: p, Disp: 8})
	g.ADDQ(U8(32), p)
	g.DECQ(left)
	g.JNE(LabelRef("part"))
	g.DECQ(count)
	g.JNE(LabelRef("row"))
	g.ret()
}
