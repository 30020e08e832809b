package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The memory of a column between groups of rows: the indices of a permutation, and the elements of the group before.
const (
	lineBytes   = 64
	columnBytes = 2 * lineBytes
)

// lines512 writes the kernels that transpose columns to whole cache lines, for elements of each size.
func (g *gen) lines512() {
	g.beginLines512()
	g.endLines512()
	for _, k := range []struct{ size, pieces int }{{1, 1}, {2, 2}, {2, 1}, {4, 4}, {4, 1}, {8, 4}, {8, 1}} {
		g.columns512(k.size, k.pieces)
		g.edge512(k.size, k.pieces)
		g.past512(k.size, k.pieces)
	}
}

// beginLines512 writes the kernel that prepares columns for past512.
func (g *gen) beginLines512() {
	g.function("beginLinesAVX512", "func(dst, numbers *byte, cols, lines *int, memory *byte, n int)",
		"beginLinesAVX512 prepares n columns. Column j begins cols[j] bytes after dst, and its first whole cache line, or the second one if dst",
		"is aligned, lines[j] bytes after dst. It writes the indices of the permutation to memory: the bytes of numbers from the bytes before",
		"that line on.")
	dst, numbers, cols, lines, memory, n := g.param("dst"), g.param("numbers"), g.param("cols"), g.param("lines"), g.param("memory"), g.param("n")
	at, line, v := g.GP64(), g.GP64(), g.ZMM()
	g.Label("column")
	g.MOVQ(Mem{Base: cols}, at)
	g.ADDQ(dst, at)
	g.MOVQ(at, line)
	g.ORQ(U8(lineBytes-1), line)
	g.INCQ(line)
	g.NEGQ(at)
	g.ADDQ(line, at)
	g.SUBQ(dst, line)
	g.MOVQ(line, Mem{Base: lines})
	g.VMOVDQU64(Mem{Base: numbers, Index: at, Scale: 1}, v)
	g.VMOVDQA64(v, Mem{Base: memory})
	g.ADDQ(U8(8), cols)
	g.ADDQ(U8(8), lines)
	g.ADDQ(U32(columnBytes), memory)
	g.DECQ(n)
	g.JNE(LabelRef("column"))
	g.ret()
}

// endLines512 writes the kernel that stores the last group of past512.
func (g *gen) endLines512() {
	g.function("endLinesAVX512", "func(dst *byte, cols *int, memory *byte, n int)",
		"endLinesAVX512 writes the elements of the last group of n columns from memory to dst. Column j begins cols[j] bytes after dst.")
	dst, cols, memory, n := g.param("dst"), g.param("cols"), g.param("memory"), g.param("n")
	at, v := g.GP64(), g.ZMM()
	g.Label("column")
	g.MOVQ(Mem{Base: cols}, at)
	g.VMOVDQA64(Mem{Base: memory, Disp: lineBytes}, v)
	g.VMOVDQU64(v, Mem{Base: dst, Index: at, Scale: 1})
	g.ADDQ(U8(8), cols)
	g.ADDQ(U32(columnBytes), memory)
	g.DECQ(n)
	g.JNE(LabelRef("column"))
	g.ret()
}

// linesName returns the name of a kernel for elements of size bytes, and the numbers of its rows and of the columns of a block.
func linesName(kind string, size, pieces int) (name string, rows, cols int) {
	cols = 16 / size * pieces
	return fmt.Sprintf("%sLines%dx%dAVX512", kind, size, cols), lineBytes / size, cols
}

// columns512 writes the kernel that transposes groups of rows to columns at any addresses.
func (g *gen) columns512(size, pieces int) {
	name, rows, cols := linesName("turn", size, pieces)
	g.function(name, "func(dst, x *byte, offs, cols *int, fetch, ahead, groups, blocks int)",
		fmt.Sprintf("%s transposes %d rows of elements of size %d for each group, and %d columns for each block. Row i is offs[i] bytes", name, rows, size, cols),
		"after x, and column j becomes adjacent elements cols[j] bytes after dst. The kernel prefetches the line that is ahead bytes after each store; a store that",
		"crosses lines waits for both. If fetch is not 0, it also prefetches the rows whose offsets are fetch bytes further on in offs.")
	dst, x, offs, ahead := g.param("dst"), g.param("x"), g.param("offs"), g.param("ahead")
	quarters, at, to, blocks := g.quarters512(), g.GP64(), g.GP64(), g.GP64()
	g.ADDQ(dst, ahead)
	g.Label("group")
	g.Load(g.Param("cols"), to)
	g.Load(g.Param("blocks"), blocks)
	g.Label("block")
	g.fetch512(x, offs, rows, pieces)
	g.block512(x, offs, quarters, size, pieces, func(i int, c reg.VecVirtual) {
		g.MOVQ(Mem{Base: to, Disp: 8 * i}, at)
		g.VMOVDQU64(c, Mem{Base: dst, Index: at, Scale: 1})
		g.PREFETCHT0(Mem{Base: ahead, Index: at, Scale: 1})
	})
	g.ADDQ(U8(16*pieces), x)
	g.ADDQ(U32(8*cols), to)
	g.DECQ(blocks)
	g.JNE(LabelRef("block"))
	g.ADDQ(U8(lineBytes), ahead)
	g.nextGroup512(dst, x, offs, rows, pieces, at)
	g.ret()
}

// fetch512 prefetches the last bytes of the next block in rows that are further on.
func (g *gen) fetch512(x, offs reg.GPVirtual, rows, pieces int) {
	fetch, row := g.GP64(), g.GP64()
	g.Load(g.Param("fetch"), fetch)
	g.TESTQ(fetch, fetch)
	g.JZ(LabelRef("near"))
	g.ADDQ(offs, fetch)
	for i := range rows {
		g.MOVQ(Mem{Base: fetch, Disp: 8 * i}, row)
		g.PREFETCHT0(Mem{Base: x, Index: row, Scale: 1, Disp: 16*pieces - 1})
	}
	g.Label("near")
}

// nextGroup512 moves on to the next group after all blocks of a group, and repeats the group if there are any.
func (g *gen) nextGroup512(dst, x, offs reg.GPVirtual, rows, pieces int, at reg.GPVirtual) {
	g.Load(g.Param("blocks"), at)
	g.IMUL3Q(U32(uint32(16*pieces)), at, at)
	g.SUBQ(at, x)
	g.ADDQ(U8(lineBytes), dst)
	g.ADDQ(U32(uint32(8*rows)), offs)
	g.Load(g.Param("groups"), at)
	g.DECQ(at)
	g.Store(at, g.Param("groups"))
	g.JNE(LabelRef("group"))
}

// edge512 writes the kernel that transposes a group of rows to any addresses and to memory.
func (g *gen) edge512(size, pieces int) {
	name, rows, cols := linesName("edge", size, pieces)
	g.function(name, "func(dst, x *byte, offs, cols *int, memory *byte, blocks int)",
		fmt.Sprintf("%s transposes %d rows of elements of size %d, and %d columns for each block. Row i is offs[i] bytes after x. Column j", name, rows, size, cols),
		"becomes 64 bytes that are cols[j] bytes after dst, and is also written to memory.")
	dst, x, offs, to, memory, blocks := g.param("dst"), g.param("x"), g.param("offs"), g.param("cols"), g.param("memory"), g.param("blocks")
	quarters, at := g.quarters512(), g.GP64()
	g.Label("block")
	g.block512(x, offs, quarters, size, pieces, func(i int, c reg.VecVirtual) {
		g.MOVQ(Mem{Base: to, Disp: 8 * i}, at)
		g.VMOVDQU64(c, Mem{Base: dst, Index: at, Scale: 1})
		g.VMOVDQA64(c, Mem{Base: memory, Disp: columnBytes*i + lineBytes})
	})
	g.ADDQ(U8(16*pieces), x)
	g.ADDQ(U32(8*cols), to)
	g.ADDQ(U32(columnBytes*cols), memory)
	g.DECQ(blocks)
	g.JNE(LabelRef("block"))
	g.ret()
}

// past512 writes the kernel that transposes groups of rows and stores whole cache lines past the caches: the first elements of a line are
// from the group before, and the others from this group.
func (g *gen) past512(size, pieces int) {
	name, rows, cols := linesName("past", size, pieces)
	g.function(name, "func(dst, x *byte, offs, lines *int, memory *byte, fetch, groups, blocks int)",
		fmt.Sprintf("%s transposes %d rows of elements of size %d for each group, and %d columns for each block. Row i is offs[i] bytes", name, rows, size, cols),
		"after x. A group becomes a whole cache line of each column, with a non-temporal store: column j has that of the first group lines[j] bytes after dst.",
		"Their elements are those of memory and of the group at the indices in memory. The last group stays in memory. If fetch is not 0, the kernel prefetches",
		"the rows whose offsets are fetch bytes further on in offs.")
	dst, x, offs, memory := g.param("dst"), g.param("x"), g.param("offs"), g.param("memory")
	quarters, at, to, blocks := g.quarters512(), g.GP64(), g.GP64(), g.GP64()
	g.Label("group")
	g.Load(g.Param("lines"), to)
	g.Load(g.Param("blocks"), blocks)
	g.Label("block")
	g.fetch512(x, offs, rows, pieces)
	index, before := g.ZMM(), g.ZMM()
	g.block512(x, offs, quarters, size, pieces, func(i int, c reg.VecVirtual) {
		m := Mem{Base: memory, Disp: columnBytes * i}
		g.MOVQ(Mem{Base: to, Disp: 8 * i}, at)
		g.VMOVDQA64(m, index)
		g.VMOVDQA64(m.Offset(lineBytes), before)
		g.join2(size, c, before, index)
		g.VMOVDQA64(c, m.Offset(lineBytes))
		g.VMOVNTDQ(index, Mem{Base: dst, Index: at, Scale: 1})
	})
	g.ADDQ(U8(16*pieces), x)
	g.ADDQ(U32(8*cols), to)
	g.ADDQ(U32(columnBytes*cols), memory)
	g.DECQ(blocks)
	g.JNE(LabelRef("block"))
	g.Load(g.Param("blocks"), blocks)
	g.IMUL3Q(U32(columnBytes*cols), blocks, at)
	g.SUBQ(at, memory)
	g.nextGroup512(dst, x, offs, rows, pieces, at)
	g.ret()
}

// join2 sets index to the elements of low and high at these indices.
func (g *gen) join2(size int, high, low, index reg.VecVirtual) {
	switch size {
	case 1:
		g.VPERMI2B(high, low, index)
	case 2:
		g.VPERMI2W(high, low, index)
	case 4:
		g.VPERMI2D(high, low, index)
	default:
		g.VPERMI2Q(high, low, index)
	}
}

// block512 transposes as many rows as a cache line has elements, and some pieces of 16 bytes of each row. It calls store for each column.
func (g *gen) block512(x, offs reg.GPVirtual, quarters []reg.Register, size, pieces int, store func(i int, c reg.VecVirtual)) {
	n, row := 16/size, g.GP64()
	v := make([]reg.VecVirtual, n*pieces)
	for i := range v {
		v[i] = g.ZMM()
	}
	for i := range 4 * n {
		g.MOVQ(Mem{Base: offs, Disp: 8 * i}, row)
		for j := range pieces {
			switch from, to := (Mem{Base: x, Index: row, Scale: 1, Disp: 16 * j}), v[n*j+i%n]; {
			case i >= n:
				g.VBROADCASTF32X4(from, quarters[i/n], to)
			case size < 4:
				g.VBROADCASTF32X4(from, to)
			default:
				g.VMOVUPS(from, to.AsX())
			}
		}
	}
	for j := range pieces {
		for i, c := range g.turnLanes512(size, v[n*j:n*j+n]) {
			store(n*j+i, c)
		}
	}
}

// turnLanes512 transposes the matrices of elements of size bytes in each 16 bytes of the registers.
func (g *gen) turnLanes512(size int, v []reg.VecVirtual) []reg.VecVirtual {
	low := map[int]func(...Op){1: g.VPUNPCKLBW, 2: g.VPUNPCKLWD, 4: g.VPUNPCKLDQ, 8: g.VPUNPCKLQDQ}[size]
	high := map[int]func(...Op){1: g.VPUNPCKHBW, 2: g.VPUNPCKHWD, 4: g.VPUNPCKHDQ, 8: g.VPUNPCKHQDQ}[size]
	for step := len(v); step > 1; step /= 2 { // each step moves the highest bit of the number of a row to the lowest of a column
		var w []reg.VecVirtual
		for i := range len(v) / 2 {
			a, b := g.ZMM(), g.ZMM()
			low(v[i+len(v)/2], v[i], a)
			high(v[i+len(v)/2], v[i], b)
			w = append(w, a, b)
		}
		v = w
	}
	return v
}
