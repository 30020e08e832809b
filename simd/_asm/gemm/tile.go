package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vectors is the width of a tile in vectors: with the tallest tile the
// accumulators, two vectors of B and one of A fill the register file.
const vectors = 2

// unroll is how many steps of k one pass of the loop takes.
const unroll = 4

// line is the size of a cache line in bytes.
const line = 64

// ahead is how many steps of k before its use a row of B is asked for, once in
// a pass. It is a nudge: asking for every row was measured to be slower where
// B is packed and much slower where it is not, as rows that are a power of two
// apart push each other out of the first cache.
const ahead = 8

// tile writes the kernel for mr rows: it walks over panels of B that are two
// vectors wide and leaves the last, narrower one to masked bodies.
//
// The elements of A are broadcast to a register of their own rather than in
// each multiplication: as operands they would be loads as many as
// multiplications, and the load ports are as few as the multipliers.
func (g *gen) tile(mr int) {
	g.function(fmt.Sprintf("gemmTile%d%s", mr, g.upper()),
		"func(a, b, c, bias, next *float32, as, bs, bp, cs, ns, k, n int, add bool)",
		fmt.Sprintf("gemmTile%d%s is the tile kernel of %d rows: see gemmTile.", mr, g.upper(), mr))
	width := vectors * g.lanes()
	done, narrow, single := g.label("done"), g.label("narrow"), g.label("single")
	n := g.GP64()

	panel := g.label("panel")
	g.Label(panel)
	g.Load(g.Param("n"), n)
	g.CMPQ(n, I32(width))
	g.JLT(LabelRef(narrow))
	g.panel(mr, vectors, nil)
	g.advance("b", "bp")
	g.ADDQ(I32(4*width), g.slot("c"))
	g.nextBias(4 * width)
	g.SUBQ(I32(width), g.slot("n"))
	g.JMP(LabelRef(panel))

	g.Label(narrow)
	g.TESTQ(n, n)
	g.JLE(LabelRef(done))
	g.CMPQ(n, I32(g.lanes()))
	g.JLE(LabelRef(single))
	g.SUBQ(I32(g.lanes()), n)
	g.panel(mr, vectors, g.tailMask(g, n, g.registers()-1))
	g.JMP(LabelRef(done))
	g.Label(single)
	g.panel(mr, vectors-1, g.tailMask(g, n, g.registers()-1))

	g.Label(done)
	g.VZEROUPPER()
	g.RET()
}

// slot is the memory of a parameter: it is the kernel's own while it runs, and
// what changes once a panel lives there and leaves the registers to pointers.
func (g *gen) slot(param string) Mem {
	b, err := g.Param(param).Resolve()
	check(err)
	return b.Addr
}

func (g *gen) advance(param, by string) {
	step := g.GP64()
	g.Load(g.Param(by), step)
	g.ADDQ(step, g.slot(param))
}

// nextBias moves bias on unless it is nil.
func (g *gen) nextBias(bytes int) {
	skip := g.label("nobias")
	g.CMPQ(g.slot("bias"), I8(0))
	g.JEQ(LabelRef(skip))
	g.ADDQ(I32(bytes), g.slot("bias"))
	g.Label(skip)
}

// panel writes the product of mr rows and one panel of vecs vectors, the last
// of them masked unless mask is nil.
func (g *gen) panel(mr, vecs int, mask reg.Register) {
	load := func(m Mem, i int, v reg.Register) {
		if mask != nil && i == vecs-1 {
			g.loadMasked(g, m, mask, v)
		} else {
			g.VMOVUPS(m, v)
		}
	}
	vecBytes := 4 * g.lanes()

	// Rows three apart have a pointer each, those between are reached by
	// the index: 5 pointers for 14 rows.
	var rows []reg.GPVirtual
	as := g.GP64()
	g.Load(g.Param("as"), as)
	for i := 0; i < mr; i += 3 {
		p := g.GP64()
		if i == 0 {
			g.Load(g.Param("a"), p)
		} else {
			g.LEAQ(Mem{Base: rows[len(rows)-1], Index: as, Scale: 2}, p)
			g.ADDQ(as, p)
		}
		rows = append(rows, p)
	}
	at := func(i, k int) Mem {
		m := Mem{Base: rows[i/3], Disp: 4 * k}
		if i%3 != 0 {
			m.Index, m.Scale = as, uint8(i%3)
		}
		return m
	}

	acc := make([][]reg.Register, mr)
	for i := range acc {
		for v := 0; v < vecs; v++ {
			acc[i] = append(acc[i], g.vector(i*vecs+v))
		}
	}
	bias, zeros, start := g.GP64(), g.label("zeros"), g.label("start")
	g.Load(g.Param("bias"), bias)
	g.TESTQ(bias, bias)
	g.JEQ(LabelRef(zeros))
	for v := range acc[0] {
		load(Mem{Base: bias, Disp: v * vecBytes}, v, acc[0][v])
		for i := 1; i < mr; i++ {
			g.VMOVAPS(acc[0][v], acc[i][v])
		}
	}
	g.JMP(LabelRef(start))
	g.Label(zeros)
	for i := range acc {
		for v := range acc[i] {
			g.zero(g, acc[i][v])
		}
	}
	g.Label(start)

	b, bs, bs3, c, cs, k := g.GP64(), g.GP64(), g.GP64(), g.GP64(), g.GP64(), g.GP64()
	g.Load(g.Param("b"), b)
	g.Load(g.Param("k"), k)
	hints := g.hints(mr, vecs*vecBytes, b)
	g.Load(g.Param("bs"), bs)
	g.LEAQ(Mem{Base: bs, Index: bs, Scale: 2}, bs3)

	var bv []reg.Register
	for v := 0; v < vecs; v++ {
		bv = append(bv, g.vector(g.rows()*vectors+v))
	}
	av := g.vector(g.rows()*vectors + vectors)
	step := func(kk int, row Mem) {
		for v := range bv {
			m := row
			m.Disp += v * vecBytes
			load(m, v, bv[v])
		}
		for i := range acc {
			g.VBROADCASTSS(at(i, kk), av)
			for v := range bv {
				g.VFMADD231PS(bv[v], av, acc[i][v])
			}
		}
	}
	loop, rest, last, store := g.label("loop"), g.label("rest"), g.label("last"), g.label("store")
	g.SUBQ(I8(unroll), k)
	g.JLT(LabelRef(rest))
	g.Label(loop)
	for kk := 0; kk < unroll; kk++ {
		row := Mem{Base: b}
		switch kk {
		case 1, 2:
			row.Index, row.Scale = bs, uint8(kk)
		case 3:
			row.Index, row.Scale = bs3, 1
		}
		step(kk, row)
		for v := 0; mask == nil && kk == 0 && v < vecs*vecBytes; v += line {
			g.PREFETCHT0(Mem{Base: b, Index: bs, Scale: ahead, Disp: v})
		}
	}
	hints()
	for _, p := range rows {
		g.ADDQ(I8(4*unroll), p)
	}
	g.LEAQ(Mem{Base: b, Index: bs, Scale: unroll}, b)
	g.SUBQ(I8(unroll), k)
	g.JGE(LabelRef(loop))

	g.Label(rest)
	g.ADDQ(I8(unroll), k)
	g.JEQ(LabelRef(store))
	g.Label(last)
	step(0, Mem{Base: b})
	for _, p := range rows {
		g.ADDQ(I8(4), p)
	}
	g.ADDQ(bs, b)
	g.DECQ(k)
	g.JNE(LabelRef(last))

	g.Label(store)
	write := g.label("write")
	g.Load(g.Param("c"), c)
	g.Load(g.Param("cs"), cs)
	add := g.GP8()
	g.Load(g.Param("add"), add)
	g.TESTB(add, add)
	g.JEQ(LabelRef(write))
	for i := range acc {
		for v := range acc[i] {
			m := Mem{Base: c, Disp: v * vecBytes}
			if mask != nil && v == vecs-1 {
				g.loadMasked(g, m, mask, av)
				g.VADDPS(av, acc[i][v], acc[i][v])
			} else {
				g.VADDPS(m, acc[i][v], acc[i][v])
			}
		}
		if i < mr-1 {
			g.ADDQ(cs, c)
		}
	}
	g.Load(g.Param("c"), c)
	g.Label(write)
	for i := range acc {
		for v := range acc[i] {
			m := Mem{Base: c, Disp: v * vecBytes}
			if mask != nil && v == vecs-1 {
				g.storeMasked(g, acc[i][v], mask, m)
			} else {
				g.VMOVUPS(acc[i][v], m)
			}
		}
		if i < mr-1 {
			g.ADDQ(cs, c)
		}
	}
}

// hints asks for the lines of C that the tile ends in and for those of the
// next tile of A, before they are needed but not all at once: a burst would
// hold all the buffers that lines from the second cache pass through, and
// B comes by that way. With a K so small that they come too late none was
// measured to be better than a burst. The function that it returns writes the hints of one
// pass of the loop, a row of the tile; b is an address that is in the cache.
func (g *gen) hints(mr, width int, b reg.GPVirtual) func() {
	at, by, next, ns, left := g.GP64(), g.GP64(), g.GP64(), g.GP64(), g.GP64()
	given := g.label("given")
	g.Load(g.Param("c"), at)
	g.Load(g.Param("cs"), by)
	g.MOVQ(I32(2*mr), left)
	g.Load(g.Param("next"), next)
	g.Load(g.Param("ns"), ns)
	g.TESTQ(next, next)
	g.JNE(LabelRef(given))
	g.MOVQ(b, next)
	g.XORQ(ns, ns)
	g.Label(given)
	g.ADDQ(I32(width), g.slot("next"))
	return func() {
		for v := 0; v < width; v += line {
			g.PREFETCHT0(Mem{Base: at, Disp: v})
		}
		g.ADDQ(by, at)
		g.DECQ(left)
		g.CMOVQLE(b, at)
		g.CMPQ(left, I32(mr))
		g.CMOVQEQ(next, at)
		g.CMOVQEQ(ns, by)
	}
}
