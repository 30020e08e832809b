package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// isa abstracts the two instruction sets.
type isa interface {
	upper() string             // the ending of the function names
	lower() string             // the part of the file name
	lanes() int                // floats in a vector
	rows() int                 // rows of the tallest tile
	vector(i int) reg.Register // register i
	registers() int

	// tailMask makes the mask of the first n lanes, 0 < n <= lanes. Masked loads return zeros in
	// the other lanes and never fault there. If a mask is a vector, it is in register number spare.
	tailMask(g *gen, n reg.Register, spare int) reg.Register
	loadMasked(g *gen, m Mem, mask, v reg.Register)
	storeMasked(g *gen, v, mask reg.Register, m Mem)
	zero(g *gen, v reg.Register)

	// braids reports whether there are kernels for a braided A. broadcasts reports whether they
	// multiply by row i of A with a broadcast memory operand.
	braids() bool
	broadcasts(i int) bool

	rowsShape(mr int) (k, wide int) // of rowsChunk: rows of B, vectors of columns
	pairWide() int                  // vectors of each row that correlatePair computes
	dotsMost() int                  // largest q of dots
	dotsRows(q int) int             // rows that dots multiplies at once

	// shuffle transposes the square matrix in the first registers and returns the registers of the
	// transposed rows.
	shuffle(g *gen) []reg.Register
}

type avx512 struct{}

func (avx512) upper() string             { return "AVX512" }
func (avx512) lower() string             { return "avx512" }
func (avx512) lanes() int                { return 16 }
func (avx512) rows() int                 { return 14 }
func (avx512) registers() int            { return 32 }
func (avx512) vector(i int) reg.Register { return reg.Vector.Lookup(reg.Index(i), reg.S512) }

func (avx512) tailMask(g *gen, n reg.Register, _ int) reg.Register {
	ones, k := g.GP32(), g.K()
	g.MOVL(I32(-1), ones)
	g.BZHIL(n.(reg.GP).As32(), ones, ones)
	g.KMOVW(ones, k)
	return k
}

func (avx512) loadMasked(g *gen, m Mem, mask, v reg.Register)  { g.VMOVUPS_Z(m, mask, v) }
func (avx512) storeMasked(g *gen, v, mask reg.Register, m Mem) { g.VMOVUPS(v, mask, m) }
func (avx512) zero(g *gen, v reg.Register)                     { g.VPXORD(v, v, v) }

type avx2 struct{}

func (avx2) upper() string             { return "AVX2" }
func (avx2) lower() string             { return "avx2" }
func (avx2) lanes() int                { return 8 }
func (avx2) rows() int                 { return 6 }
func (avx2) registers() int            { return 16 }
func (avx2) vector(i int) reg.Register { return reg.Vector.Lookup(reg.Index(i), reg.S256) }

// maskTable is 8 lanes of ones and 8 of zeros: a window on it is a mask.
const maskTable = "gemmMasks"

func (avx2) maskTable(g *gen) {
	g.StaticGlobal(maskTable)
	g.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := 0; i < 16; i++ {
		v := U32(0)
		if i < 8 {
			v = ^U32(0)
		}
		g.AddDatum(4*i, v)
	}
}

func (avx2) tailMask(g *gen, n reg.Register, spare int) reg.Register {
	at, back, mask := g.GP64(), g.GP64(), g.vector(spare)
	g.LEAQ(NewDataAddr(Symbol{Name: maskTable, Static: true}, 32), at)
	g.MOVQ(n, back)
	g.NEGQ(back)
	g.VMOVUPS(Mem{Base: at, Index: back, Scale: 4}, mask)
	return mask
}

func (avx2) loadMasked(g *gen, m Mem, mask, v reg.Register)  { g.VMASKMOVPS(m, mask, v) }
func (avx2) storeMasked(g *gen, v, mask reg.Register, m Mem) { g.VMASKMOVPS(v, mask, m) }
func (avx2) zero(g *gen, v reg.Register)                     { g.VXORPS(v, v, v) }

func (avx512) braids() bool          { return true }
func (avx512) broadcasts(i int) bool { return i%2 == 1 }

func (avx512) rowsShape(mr int) (k, wide int) {
	return []int{8, 8, 4, 4}[mr-1], []int{4, 2, 2, 2}[mr-1]
}
func (avx512) pairWide() int      { return 8 }
func (avx512) dotsMost() int      { return 8 }
func (avx512) dotsRows(q int) int { return []int{8, 6, 6, 6, 4, 4, 3, 3}[q-1] }

func (v avx512) shuffle(g *gen) []reg.Register {
	g.unpack(0, 16)
	// Lane l of register 4*i+q now has column 4*l+q of the rows 4*i to 4*i+3.
	const even, odd = 0x88, 0xdd
	for _, pass := range []struct{ from, to, pair int }{{0, 16, 4}, {16, 0, 8}} {
		r := func(i int) reg.Register { return v.vector(pass.from + i) }
		for i := 0; i < 16; i++ {
			if i&pass.pair != 0 {
				continue
			}
			g.VSHUFF32X4(U8(even), r(i+pass.pair), r(i), v.vector(pass.to+i))
			g.VSHUFF32X4(U8(odd), r(i+pass.pair), r(i), v.vector(pass.to+i+pass.pair))
		}
	}
	// The first pass moves odd columns to odd registers, the second pass moves upper columns to
	// upper registers.
	var out []reg.Register
	for c := 0; c < 16; c++ {
		l, q := c/4, c%4
		out = append(out, v.vector(q+l%2*4+l/2*8))
	}
	return out
}

func (avx2) braids() bool        { return false }
func (avx2) broadcasts(int) bool { return false }

func (avx2) rowsShape(mr int) (k, wide int) {
	return []int{4, 4, 2, 2}[mr-1], []int{4, 2, 2, 1}[mr-1]
}
func (avx2) pairWide() int      { return 4 }
func (avx2) dotsMost() int      { return 4 }
func (avx2) dotsRows(q int) int { return []int{6, 4, 3, 2}[q-1] }

func (v avx2) shuffle(g *gen) []reg.Register {
	g.unpack(0, 8)
	const low, high = 0x20, 0x31
	for q := 0; q < 4; q++ {
		a, b := v.vector(q), v.vector(4+q)
		g.VPERM2F128(U8(low), b, a, v.vector(8+q))
		g.VPERM2F128(U8(high), b, a, v.vector(12+q))
	}
	var out []reg.Register
	for c := 0; c < 8; c++ {
		out = append(out, v.vector(8+c))
	}
	return out
}

// unpack transposes the 4×4 blocks in the 128-bit lanes of the registers from here on. It uses the
// same number of registers from there on as temporaries.
func (g *gen) unpack(here, there int) {
	n := g.lanes()
	a := func(i int) reg.Register { return g.vector(here + i) }
	b := func(i int) reg.Register { return g.vector(there + i) }
	for i := 0; i < n; i += 2 {
		g.VUNPCKLPS(a(i+1), a(i), b(i))
		g.VUNPCKHPS(a(i+1), a(i), b(i+1))
	}
	for i := 0; i < n; i += 4 {
		g.VUNPCKLPD(b(i+2), b(i), a(i))
		g.VUNPCKHPD(b(i+2), b(i), a(i+1))
		g.VUNPCKLPD(b(i+3), b(i+1), a(i+2))
		g.VUNPCKHPD(b(i+3), b(i+1), a(i+3))
	}
}
