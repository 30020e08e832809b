package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// stripSignature is the signature of the kernels that transpose strips.
const stripSignature = "func(dst, x *uint32, offs *int, ds, ahead, rows int)"

// stripDoc documents such a kernel. It transposes high rows at a time.
func (g *gen) stripDoc(name string, width, high int) {
	g.function(name, stripSignature,
		fmt.Sprintf("%s transposes %d columns. Row i is offs[i] bytes after x, and the columns become rows of dst, which are ds bytes apart.", name, width),
		fmt.Sprintf("rows is at least %d. If ahead is not 0, the kernel prefetches the rows whose offsets are ahead bytes further on in offs.", high))
}

// strip writes a kernel that transposes the columns of a strip, 8 rows at a time. The last rows overlap those before. It stores to each
// row of dst in sequence, so that these lines stay in the first cache.
func (g *gen) strip(width int) {
	g.stripDoc(fmt.Sprintf("strip%dAVX2", width), width, lanes)
	dst, x, offs, ds, rest := g.param("dst"), g.param("x"), g.param("offs"), g.param("ds"), g.param("rows")
	p, d := g.beginStep(x, offs, width)
	g.MOVQ(dst, d)
	for j := 0; j < width; j += 4 {
		for _, c := range g.turn(g.halves(x, p, 4*j)) {
			g.VMOVUPS(c, Mem{Base: d})
			g.ADDQ(ds, d)
		}
	}
	g.nextRows(dst, offs, rest, lanes)
	g.ret()
}

// stripColumns writes a kernel that transposes 16 columns to any places, 8 rows at a time.
func (g *gen) stripColumns() {
	const width = 16
	g.columnsDoc("stripColumnsAVX2", width, lanes)
	dst, x, offs, cols, rest := g.param("dst"), g.param("x"), g.param("offs"), g.param("cols"), g.param("rows")
	p, d := g.beginStep(x, offs, width)
	for j := 0; j < width; j += 4 {
		for i, c := range g.turn(g.halves(x, p, 4*j)) {
			g.MOVQ(Mem{Base: cols, Disp: 8 * (j + i)}, d)
			g.VMOVUPS(c, Mem{Base: dst, Index: d, Scale: 1})
		}
	}
	g.nextRows(dst, offs, rest, lanes)
	g.ret()
}

// beginStep begins a step of 8 rows. It returns registers with the offsets of the rows, and another register.
func (g *gen) beginStep(x, offs reg.GPVirtual, width int) (p []reg.GPVirtual, d reg.GPVirtual) {
	p, d = make([]reg.GPVirtual, lanes), g.GP64()
	for i := range p {
		p[i] = g.GP64()
	}
	g.Label("step")
	g.prefetchRows(x, offs, d, width, lanes)
	for i := range p {
		g.MOVQ(Mem{Base: offs, Disp: 8 * i}, p[i])
	}
	return p, d
}

// columnsDoc documents a kernel that transposes columns to any places, high rows at a time.
func (g *gen) columnsDoc(name string, width, high int) {
	g.function(name, "func(dst, x *uint32, offs, cols *int, ahead, rows int)",
		fmt.Sprintf("%s transposes %d columns. Row i is offs[i] bytes after x, and column j becomes elements that are adjacent, cols[j] bytes after", name, width),
		fmt.Sprintf("dst. rows is at least %d. If ahead is not 0, the kernel prefetches the rows whose offsets are ahead bytes further on in offs.", high))
}

// halves returns 4 registers with 4 elements of row i in the lower half of register i, and 4 of row i+4 in its upper half.
func (g *gen) halves(x reg.GPVirtual, p []reg.GPVirtual, disp int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, 4)
	for i := range v {
		v[i] = g.YMM()
		g.VBROADCASTF128(Mem{Base: x, Index: p[i], Scale: 1, Disp: disp}, v[i])
		g.VINSERTF128(U8(1), Mem{Base: x, Index: p[i+4], Scale: 1, Disp: disp}, v[i], v[i])
	}
	return v
}

// prefetchRows prefetches the last element of the columns in rows that are ahead of the next high rows.
func (g *gen) prefetchRows(x, offs, ahead reg.GPVirtual, width, high int) {
	g.Load(g.Param("ahead"), ahead)
	g.TESTQ(ahead, ahead)
	g.JZ(LabelRef("near"))
	g.ADDQ(offs, ahead)
	row := g.GP64()
	for i := range high {
		g.MOVQ(Mem{Base: ahead, Disp: 8 * i}, row)
		g.PREFETCHT0(Mem{Base: x, Index: row, Scale: 1, Disp: 4 * (width - 1)})
	}
	g.Label("near")
}

// nextRows moves on to the next high rows, or to the last ones if there are fewer, and repeats the step if there are any.
func (g *gen) nextRows(dst, offs, rest reg.GPVirtual, high int) {
	g.ADDQ(U8(4*high), dst)
	g.ADDQ(U32(8*high), offs)
	g.SUBQ(U8(high), rest)
	g.JZ(LabelRef("end"))
	g.CMPQ(rest, U8(high))
	g.JGE(LabelRef("step"))
	g.SUBQ(U8(high), rest)
	g.LEAQ(Mem{Base: dst, Index: rest, Scale: 4}, dst)
	g.LEAQ(Mem{Base: offs, Index: rest, Scale: 8}, offs)
	g.MOVQ(U32(high), rest)
	g.JMP(LabelRef("step"))
	g.Label("end")
}
