package main

import (
	"fmt"
	"math/bits"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// turnRows512 writes a kernel that transposes groups of 16 rows at any addresses, 16 or 4 columns at a time. It reads a cache line of a
// row at a time completely: if the distance of the rows is a power of two, the first cache holds hardly more lines of them. Masked loads
// put the quarters of a line where a matrix of 4 rows in each quarter of a register needs them, so that half of the work is not for the
// single shuffle port.
func (g *gen) turnRows512(width int) {
	name, prefetches := fmt.Sprintf("turnRows%dAVX512", width), ""
	if width == lanes512 {
		prefetches = " The kernel prefetches the data ahead bytes after each part of a row."
	}
	g.function(name, "func(dst, x *uint32, offs *int, ds, skip, ahead, groups, blocks int)",
		fmt.Sprintf("%s transposes a matrix of 16 rows for each group and of %d columns for each block. Row i is offs[i] bytes after x.", name, width),
		"The columns of a group are ds bytes apart in dst; the next group is skip bytes after the end of a group."+prefetches)
	dst, x, offs, ds, groups, ahead := g.param("dst"), g.param("x"), g.param("offs"), g.param("ds"), g.param("groups"), g.param("ahead")
	g.ADDQ(x, ahead)
	quarters := g.quarters512()
	k, row, ds3 := g.GP64(), g.GP64(), g.GP64()
	g.LEAQ(Mem{Base: ds, Index: ds, Scale: 2}, ds3)
	g.Label("group")
	g.Load(g.Param("blocks"), k)
	g.Label("block")
	g.square512(x, offs, row, quarters, width, func() {
		if width == lanes512 {
			g.PREFETCHT0(Mem{Base: ahead, Index: row, Scale: 1})
		}
	}, g.spaced512(dst, ds, ds3, false))
	g.ADDQ(U8(4*width), x)
	g.ADDQ(U8(4*width), ahead)
	g.DECQ(k)
	g.JNE(LabelRef("block"))
	g.Load(g.Param("blocks"), k)
	g.SHLQ(U8(2+bits.Len(uint(width-1))), k)
	g.SUBQ(k, x)
	g.SUBQ(k, ahead)
	g.Load(g.Param("skip"), k)
	g.ADDQ(k, dst)
	g.ADDQ(U32(8*lanes512), offs)
	g.DECQ(groups)
	g.JNE(LabelRef("group"))
	g.ret()
}

// quarters512 returns masks, the mask with index i for quarter i of a register; there is none for the first one.
func (g *gen) quarters512() []reg.Register {
	quarters, word := make([]reg.Register, 4), g.GP32()
	for i := 1; i < len(quarters); i++ {
		quarters[i] = g.K()
		g.MOVL(U32(0xf<<(4*i)), word)
		g.KMOVW(word, quarters[i])
	}
	return quarters
}

// square512 transposes 16 rows of width columns. It calls each with the offset of a row in register row, and store for each 4 columns.
func (g *gen) square512(x, offs, row reg.GPVirtual, quarters []reg.Register, width int, each func(), store func(j int, c []reg.VecVirtual)) {
	v := make([]reg.VecVirtual, width) // 4 registers for each 4 columns
	for i := range v {
		v[i] = g.ZMM()
	}
	for i := range lanes512 {
		g.MOVQ(Mem{Base: offs, Disp: 8 * i}, row)
		each()
		for j := range width / 4 {
			if from, to := (Mem{Base: x, Index: row, Scale: 1, Disp: 16 * j}), v[4*j+i%4]; i < 4 {
				g.VMOVUPS(from, to.AsX())
			} else {
				g.VBROADCASTF32X4(from, quarters[i/4], to)
			}
		}
	}
	for j := range width / 4 {
		store(4*j, g.quad(v[4*j:4*j+4], g.ZMM))
	}
}

// aheadOfStore is the distance in bytes of the lines that are prefetched after a store of 16 elements of a column. A store that crosses cache
// lines waits for both of them, and the next store to the column reaches a new one.
const aheadOfStore = 8 * lanes512

// spaced512 returns a function that stores 4 columns ds bytes apart, and moves dst to the next one. ds3 is 3·ds. If ahead is set, it
// prefetches the lines of the next stores to the columns.
func (g *gen) spaced512(dst, ds, ds3 reg.GPVirtual, ahead bool) func(int, []reg.VecVirtual) {
	return func(_ int, c []reg.VecVirtual) {
		for i, m := range []Mem{{Base: dst}, {Base: dst, Index: ds, Scale: 1}, {Base: dst, Index: ds, Scale: 2}, {Base: dst, Index: ds3, Scale: 1}} {
			g.VMOVUPS(c[i], m)
			if ahead {
				m.Disp = aheadOfStore
				g.PREFETCHT0(m)
			}
		}
		g.LEAQ(Mem{Base: dst, Index: ds, Scale: 4}, dst)
	}
}

// strip512 writes a kernel that transposes the columns of a strip, 16 rows at a time. The last rows overlap those before.
func (g *gen) strip512(width int) {
	g.stripDoc(fmt.Sprintf("strip%dAVX512", width), width, lanes512)
	dst, x, offs, ds, rest := g.param("dst"), g.param("x"), g.param("offs"), g.param("ds"), g.param("rows")
	quarters := g.quarters512()
	d, row, ds3 := g.GP64(), g.GP64(), g.GP64()
	g.LEAQ(Mem{Base: ds, Index: ds, Scale: 2}, ds3)
	g.Label("step")
	g.prefetchRows(x, offs, d, width, lanes512)
	g.MOVQ(dst, d)
	g.square512(x, offs, row, quarters, width, func() {}, g.spaced512(d, ds, ds3, true))
	g.nextRows(dst, offs, rest, lanes512)
	g.ret()
}

// stripColumns512 writes a kernel that transposes 16 columns to any places, 16 rows at a time.
func (g *gen) stripColumns512() {
	g.columnsDoc("stripColumnsAVX512", lanes512, lanes512)
	dst, x, offs, cols, rest := g.param("dst"), g.param("x"), g.param("offs"), g.param("cols"), g.param("rows")
	quarters, d, row := g.quarters512(), g.GP64(), g.GP64()
	g.Label("step")
	g.prefetchRows(x, offs, d, lanes512, lanes512)
	g.square512(x, offs, row, quarters, lanes512, func() {}, func(j int, c []reg.VecVirtual) {
		for i, v := range c {
			g.MOVQ(Mem{Base: cols, Disp: 8 * (j + i)}, d)
			g.VMOVUPS(v, Mem{Base: dst, Index: d, Scale: 1})
			g.PREFETCHT0(Mem{Base: dst, Index: d, Scale: 1, Disp: aheadOfStore})
		}
	})
	g.nextRows(dst, offs, rest, lanes512)
	g.ret()
}

// join512 writes a kernel that copies the results of turnRows to rows, by whole cache lines of these. A line of dst consists of two
// parts of x if the row is not aligned.
func (g *gen) join512(past bool) {
	name := "joinLinesAVX512"
	if past {
		name = "joinLinesStreamAVX512"
		g.function(name, "func(dst, x *uint32, ds, xs, ss, from, high, have, count int)", name+" is joinLinesAVX512 with non-temporal stores of whole lines.")
	} else {
		g.function(name, "func(dst, x *uint32, ds, xs, ss, from, high, have, count int)",
			name+" writes count rows to dst, which are ds elements apart. Row elements i to i+15, for multiples i of 16, are ss·i/16",
			"elements after the first one in x; the first element of a row is xs elements after that of the row before it. With lead as the number",
			"of elements of a row before the first whole cache line, it writes elements lead to high+lead, but only those below have. If from is 0",
			"it writes the elements before lead too; else from is 16. have is at least 16 if from is 0. x is aligned to cache lines. The kernel reads",
			"a part more of x than it needs.")
	}
	dst, x, ds, xs, ss, high, have, count := g.param("dst"), g.param("x"), g.param("ds"), g.param("xs"), g.param("ss"), g.param("high"), g.param("have"), g.param("count")
	for _, d := range []reg.GPVirtual{ds, xs, ss} {
		g.SHLQ(U8(2), d)
	}
	at, to, k, rest, ones, first := g.GP64(), g.GP64(), g.GP64(), g.GP64(), g.GP32(), g.GP32()
	a, b, c, numbers, lead := g.ZMM(), g.ZMM(), g.ZMM(), g.ZMM(), g.ZMM()
	mask := g.K()
	g.VMOVDQU32(g.numbers512(), numbers)
	g.Load(g.Param("from"), k)
	g.MOVL(k.As32(), first)
	store := func(v, m Op) { g.VMOVDQU32(v, m) }
	if past {
		store = func(v, m Op) { g.VMOVNTDQ(v, m) }
	}
	partial := func() {
		g.MOVL(I32(-1), ones)
		g.BZHIL(k.As32(), ones, ones)
		g.KMOVW(ones, mask)
	}
	g.Label("row")
	g.MOVQ(dst, k)
	g.NEGQ(k)
	g.ANDQ(U8(4*lanes512-1), k)
	g.LEAQ(Mem{Base: dst, Index: k, Scale: 1}, to)
	g.SHRQ(U8(2), k)
	g.MOVQ(have, rest)
	g.SUBQ(k, rest)
	g.JLE(LabelRef("next"))
	g.CMPQ(rest, high)
	g.CMOVQGT(high, rest)
	g.VMOVDQA32(Mem{Base: x}, a)
	g.MOVQ(x, at)
	g.TESTL(first, first)
	g.JNE(LabelRef("whole"))
	partial()
	g.VMOVDQU32(a, mask, Mem{Base: dst})
	g.Label("whole")
	g.VPBROADCASTD(k.As32(), lead)
	g.VPADDD(numbers, lead, lead)
	g.MOVQ(rest, k)
	g.SHRQ(U8(4), k)
	g.JZ(LabelRef("tail"))
	g.Label("line")
	g.ADDQ(ss, at)
	g.VMOVDQA32(Mem{Base: at}, b)
	g.VMOVDQA32(lead, c)
	g.VPERMI2D(b, a, c)
	store(c, Mem{Base: to})
	g.VMOVDQA32(b, a)
	g.ADDQ(U8(4*lanes512), to)
	g.DECQ(k)
	g.JNE(LabelRef("line"))
	g.Label("tail")
	g.MOVQ(rest, k)
	g.ANDQ(U8(lanes512-1), k)
	g.JZ(LabelRef("next"))
	partial()
	g.VMOVDQA32(Mem{Base: at, Index: ss, Scale: 1}, b)
	g.VMOVDQA32(lead, c)
	g.VPERMI2D(b, a, c)
	g.VMOVDQU32(c, mask, Mem{Base: to})
	g.Label("next")
	g.ADDQ(xs, x)
	g.ADDQ(ds, dst)
	g.DECQ(count)
	g.JNE(LabelRef("row"))
	g.ret()
}

// numbers512 returns a constant with the numbers of the lanes.
func (g *gen) numbers512() Mem {
	if g.laneNumbers.Symbol.Name == "" {
		words := make([]uint64, lanes512/2)
		for i := range words {
			words[i] = uint64(2*i) | uint64(2*i+1)<<32
		}
		g.laneNumbers = g.global("laneNumbers512", words...)
	}
	return g.laneNumbers
}
