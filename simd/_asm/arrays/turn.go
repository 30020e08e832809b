package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// turnRows writes the kernel that transposes groups of 16 rows at any addresses to a buffer. It reads a cache line of 8 rows at a
// time completely: if the distance of the rows is a power of two, the first cache holds hardly more lines of them.
func (g *gen) turnRows() {
	const side = 16
	g.function("turnRowsAVX2", "func(dst, x *uint32, offs *int, skip, ahead, groups, blocks int)",
		"turnRowsAVX2 transposes a matrix of 16 rows for each group and of 16 columns for each block. Row i is offs[i] bytes after x.",
		"The columns of a group follow each other in dst; the next group is skip bytes after its end. dst is aligned to 32 bytes. The",
		"kernel prefetches the data ahead bytes after each part of a row.")
	dst, x, offs, groups, ahead := g.param("dst"), g.param("x"), g.param("offs"), g.param("groups"), g.param("ahead")
	k := g.GP64()
	rows := make([]reg.GPVirtual, 8)
	for i := range rows {
		rows[i] = g.GP64()
	}
	g.Label("group")
	g.Load(g.Param("blocks"), k)
	g.Label("block")
	for half := range 2 {
		for i, p := range rows {
			g.MOVQ(Mem{Base: offs, Disp: 8 * (8*half + i)}, p)
			g.ADDQ(x, p)
			g.PREFETCHT0(Mem{Base: p, Index: ahead, Scale: 1})
		}
		for j := 0; j < side; j += 4 {
			v := make([]reg.VecVirtual, 4)
			for i := range v {
				v[i] = g.YMM()
				g.VBROADCASTF128(Mem{Base: rows[i], Disp: 4 * j}, v[i])
				g.VINSERTF128(U8(1), Mem{Base: rows[i+4], Disp: 4 * j}, v[i], v[i])
			}
			for i, c := range g.turn(v) {
				g.VMOVAPS(c, Mem{Base: dst, Disp: 4 * (side*(j+i) + lanes*half)})
			}
		}
	}
	g.ADDQ(U8(4*side), x)
	g.ADDQ(U32(4*side*side), dst)
	g.DECQ(k)
	g.JNE(LabelRef("block"))
	g.Load(g.Param("blocks"), k)
	g.SHLQ(U8(6), k)
	g.SUBQ(k, x)
	g.Load(g.Param("skip"), k)
	g.ADDQ(k, dst)
	g.ADDQ(U32(8*side), offs)
	g.DECQ(groups)
	g.JNE(LabelRef("group"))
	g.ret()
}

// join writes a kernel that copies the results of turnRows.
func (g *gen) join(kind string) {
	doc := map[string]string{
		"":       ".",
		"Stream": " with non-temporal stores. dst is aligned to cache lines, ds is a multiple of 16.",
		"Skew": " with non-temporal stores. The rows begin at the first whole cache line of dst. Therefore a row has a part more in x. It" +
			" is copied to buffer first.",
	}[kind]
	name, buffer := "joinLines"+kind+"AVX2", ""
	if kind == "Skew" {
		buffer = ", buffer *uint32"
	}
	g.function(name, "func(dst, x *uint32, ds, xs, ss, lines, count int"+buffer+")",
		name+" writes count rows to dst, which are ds elements apart. A row has lines parts of 16 elements, which are ss elements",
		"apart in x; the first part of a row is xs elements after that of the row before it. It writes dst"+doc)
	dst, x, ds, xs, ss, lines, count := g.param("dst"), g.param("x"), g.param("ds"), g.param("xs"), g.param("ss"), g.param("lines"), g.param("count")
	for _, d := range []reg.GPVirtual{ds, xs, ss} {
		g.SHLQ(U8(2), d)
	}
	from, to, k := g.GP64(), g.GP64(), g.GP64()
	a, b := g.YMM(), g.YMM()
	copyLine := func(label string, load func(...Op), store func(v, m Op), step Op) {
		g.Label(label)
		load(Mem{Base: from}, a)
		load(Mem{Base: from, Disp: 4 * lanes}, b)
		store(a, Mem{Base: to})
		store(b, Mem{Base: to, Disp: 4 * lanes})
		g.ADDQ(step, from)
		g.ADDQ(U8(8*lanes), to)
		g.DECQ(k)
		g.JNE(LabelRef(label))
	}
	ordinary := func(v, m Op) { g.VMOVUPS(v, m) }
	g.Label("row")
	g.MOVQ(x, from)
	g.MOVQ(dst, to)
	g.MOVQ(lines, k)
	switch kind {
	case "":
		copyLine("line", g.VMOVAPS, ordinary, ss)
	case "Stream":
		copyLine("line", g.VMOVAPS, g.VMOVNTPS, ss)
	default:
		g.Load(g.Param("buffer"), to)
		g.INCQ(k)
		copyLine("gather", g.VMOVAPS, ordinary, ss)
		g.MOVQ(dst, to)
		g.NEGQ(to)
		g.ANDQ(U8(8*lanes-1), to)
		g.Load(g.Param("buffer"), from)
		g.ADDQ(to, from)
		g.ADDQ(dst, to)
		g.MOVQ(lines, k)
		copyLine("line", g.VMOVUPS, g.VMOVNTPS, U8(8*lanes))
	}
	g.ADDQ(xs, x)
	g.ADDQ(ds, dst)
	g.DECQ(count)
	g.JNE(LabelRef("row"))
	g.ret()
}
