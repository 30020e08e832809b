package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// vectors is the width of a tile in vectors: with the tallest tile the
// accumulators, two vectors of B and one of A fill the register file.
const vectors = 2

// unroll is the number of steps of k in one pass of the loop.
const unroll = 4

// line is the size of a cache line in bytes.
const line = 64

// ahead is the prefetch distance of rows of B in steps of k, with one prefetch for each pass.
// Prefetching every row was measured to be slower if B is packed, and much slower if it is not,
// because rows that are a power of two apart evict each other from the first-level cache.
const ahead = 8

// earlyRows is the prefetch distance, in steps of k, of rows of B that are not in the caches: a
// multiple of 8.
const earlyRows = 24

// tile writes the kernel for mr rows. It loops over panels of B that are two vectors wide; masked
// bodies process the last, narrower panel.
//
// The elements of A are broadcast to a register, and not by a memory operand of each
// multiplication: then every multiplication would be a load too, and processors have no more load
// ports than multipliers. tileBraid combines both ways.
func (g *gen) tile(mr int) {
	g.function(fmt.Sprintf("gemmTile%d%s", mr, g.upper()),
		"func(a, b, c, bias, next *float32, as, bs, bp, cs, ns, k, n int, add bool)",
		fmt.Sprintf("gemmTile%d%s is the tile kernel of %d rows: see gemmTile.", mr, g.upper(), mr))
	g.panels(mr, tileKind{})
}

// A tileKind is the layout of A in a tile, and additional work of the kernel.
type tileKind struct {
	packing  bool // copies B to panels
	streamed bool // writes C past the caches
	braided  bool // the elements of a column of A are adjacent
}

// tilePack writes the kernel of the tallest tile that also packs B: it stores the loaded rows
// again, which costs almost nothing beside the multiplications, and the multiplications hide the
// latency of loading B.
func (g *gen) tilePack() {
	g.tallest("Pack", "tilePackFunc", ", packed *float32", tileKind{packing: true})
}

// tileStream writes the kernel of the tallest tile that writes C past the
// caches, for a C that would not stay in them. Fetching the lines that it
// overwrites takes as long as writing them.
func (g *gen) tileStream() {
	g.tallest("Stream", "tileFunc of the largest tile with non-temporal stores; rows of C start at a multiple of 64 bytes", "", tileKind{streamed: true})
}

// tileBraid writes the kernels of the tallest tile for a braided A. A braided A has its elements in
// the order of use, so that addresses need no index register: a multiplication with a broadcast
// memory operand is then one micro-operation instead of two. This matters if a core runs two
// threads, because each gets half of the front end's throughput, which is not enough otherwise.
func (g *gen) tileBraid() {
	g.tallest("Braid", "tileFunc of the largest tile for a braided A; it ignores as", "", tileKind{braided: true})
	g.tallest("BraidPack", "tilePackFunc for a braided A; it ignores as", ", packed *float32", tileKind{braided: true, packing: true})
}

// tallest writes a kernel of the tallest tile.
func (g *gen) tallest(name, doc, params string, kind tileKind) {
	name = "gemmTile" + name + g.upper()
	g.function(name, "func(a, b, c, bias, next *float32, as, bs, bp, cs, ns, k, n int, add bool"+params+")",
		fmt.Sprintf("%s is a %s.", name, doc))
	g.panels(g.rows(), kind)
}

// panels writes the walk over the panels.
func (g *gen) panels(mr int, kind tileKind) {
	width := vectors * g.lanes()
	done, narrow, single := g.label("done"), g.label("narrow"), g.label("single")
	g.shares()
	n := g.GP64()

	panel := g.label("panel")
	g.Label(panel)
	g.Load(g.Param("n"), n)
	g.CMPQ(n, I32(width))
	g.JLT(LabelRef(narrow))
	g.panel(mr, vectors, nil, kind)
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
	g.panel(mr, vectors, g.tailMask(g, n, g.registers()-1), kind)
	g.JMP(LabelRef(done))
	g.Label(single)
	g.panel(mr, vectors-1, g.tailMask(g, n, g.registers()-1), kind)

	g.Label(done)
	if kind.streamed {
		g.SFENCE()
	}
	g.VZEROUPPER()
	g.RET()
}

// slot returns the memory of a parameter. The kernel may overwrite it, and keeps values there that
// change once for each panel, to leave the registers to pointers.
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

// nextBias advances bias unless it is nil.
func (g *gen) nextBias(bytes int) {
	skip := g.label("nobias")
	g.CMPQ(g.slot("bias"), I8(0))
	g.JEQ(LabelRef(skip))
	g.ADDQ(I32(bytes), g.slot("bias"))
	g.Label(skip)
}

// panel writes the product of mr rows and one panel of vecs vectors, the last
// of them masked unless mask is nil.
func (g *gen) panel(mr, vecs int, mask reg.Register, kind tileKind) {
	p := &tilePanel{gen: g, mr: mr, vecs: vecs, mask: mask, kind: kind}
	p.pointA()
	p.start()
	p.multiply()
	p.addC()
	p.store()
}

// tilePanel holds the values that the parts of panel share.
type tilePanel struct {
	*gen
	mr, vecs int
	mask     reg.Register
	kind     tileKind

	at            func(i, kk int) Mem // the element of row i of A at step kk
	advance       func(steps int)     // advances the pointers along A
	acc           [][]reg.Register
	b, bs, c, cs  reg.GPVirtual
	packed, early reg.GPVirtual // if the kernel packs B: the destination, and a row to prefetch
	bv            []reg.Register
	av            reg.Register
	write         string // label of the code that stores the product
}

func (p *tilePanel) vecBytes() int { return 4 * p.lanes() }

// masked reports whether vector v of a row is a masked tail.
func (p *tilePanel) masked(v int) bool { return p.mask != nil && v == p.vecs-1 }

func (p *tilePanel) load(m Mem, v int, to reg.Register) {
	if p.masked(v) {
		p.loadMasked(p.gen, m, p.mask, to)
	} else {
		p.VMOVUPS(m, to)
	}
}

// pointA computes the addresses of the rows of A.
func (p *tilePanel) pointA() {
	a := p.GP64()
	p.Load(p.Param("a"), a)
	p.at = func(i, kk int) Mem { return Mem{Base: a, Disp: 4 * (kk*p.lanes() + i)} }
	p.advance = func(steps int) { p.ADDQ(I32(4*steps*p.lanes()), a) }
	if p.kind.braided {
		return
	}
	as := p.GP64()
	p.Load(p.Param("as"), as)
	row, move := p.rowAddresses(a, as, p.mr)
	p.at = func(i, kk int) Mem { return row(i, 4*kk) }
	p.advance = func(steps int) { move(I8(4 * steps)) }
}

// start sets the sums to the bias, or to zeros if there is none.
func (p *tilePanel) start() {
	p.acc = make([][]reg.Register, p.mr)
	for i := range p.acc {
		for v := 0; v < p.vecs; v++ {
			p.acc[i] = append(p.acc[i], p.vector(i*p.vecs+v))
		}
	}
	bias, zeros, start := p.GP64(), p.label("zeros"), p.label("start")
	p.Load(p.Param("bias"), bias)
	p.TESTQ(bias, bias)
	p.JEQ(LabelRef(zeros))
	for v := range p.acc[0] {
		p.load(Mem{Base: bias, Disp: v * p.vecBytes()}, v, p.acc[0][v])
		for i := 1; i < p.mr; i++ {
			p.VMOVAPS(p.acc[0][v], p.acc[i][v])
		}
	}
	p.JMP(LabelRef(start))
	p.Label(zeros)
	for i := range p.acc {
		for v := range p.acc[i] {
			p.zero(p.gen, p.acc[i][v])
		}
	}
	p.Label(start)
}

// multiply adds the terms: unroll of them in each pass of a loop, then the others one by one.
func (p *tilePanel) multiply() {
	pack, k := p.kind.packing, p.pointB()
	hints := p.hints(p.mr, p.vecs*p.vecBytes(), p.b, !p.kind.streamed)
	p.Load(p.Param("bs"), p.bs)
	if pack {
		p.pointPacked()
	}
	for v := 0; v < p.vecs; v++ {
		p.bv = append(p.bv, p.vector(p.rows()*vectors+v))
	}
	p.av = p.vector(p.rows()*vectors + vectors)
	loop, rest, last, store := p.label("loop"), p.label("rest"), p.label("last"), p.label("store")
	p.SUBQ(I8(unroll), k)
	p.JLT(LabelRef(rest))
	p.Label(loop)
	for kk := 0; kk < unroll; kk++ {
		p.unrolled(kk)
	}
	hints()
	p.advance(unroll)
	if pack {
		p.ADDQ(I32(unroll*vectors*p.vecBytes()), p.packed)
	}
	p.SUBQ(I8(unroll), k)
	p.JGE(LabelRef(loop))

	p.Label(rest)
	p.ADDQ(I8(unroll), k)
	p.JEQ(LabelRef(store))
	p.Label(last)
	p.step(0, Mem{Base: p.b})
	p.advance(1)
	if pack {
		p.ADDQ(I32(vectors*p.vecBytes()), p.packed)
	}
	p.ADDQ(p.bs, p.b)
	p.DECQ(k)
	p.JNE(LabelRef(last))

	p.Label(store)
	if pack {
		p.MOVQ(p.packed, p.slot("packed"))
	}
}

// pointB computes the address of B and returns the number of terms.
func (p *tilePanel) pointB() (k reg.GPVirtual) {
	p.b, p.bs, p.c, p.cs, k = p.GP64(), p.GP64(), p.GP64(), p.GP64(), p.GP64()
	p.Load(p.Param("b"), p.b)
	p.Load(p.Param("k"), k)
	return k
}

// pointPacked computes the address of the packed B, and of the row that is read earlyRows steps later.
func (p *tilePanel) pointPacked() {
	p.packed, p.early = p.GP64(), p.GP64()
	p.Load(p.Param("packed"), p.packed)
	p.LEAQ(Mem{Base: p.b, Index: p.bs, Scale: 8}, p.early)
	for i := 8; i < earlyRows; i += 8 {
		p.LEAQ(Mem{Base: p.early, Index: p.bs, Scale: 8}, p.early)
	}
}

// unrolled writes step kk of a pass of the loop, and prefetches a row of B.
func (p *tilePanel) unrolled(kk int) {
	row := Mem{Base: p.b}
	if kk%2 == 1 {
		row.Index, row.Scale = p.bs, 1
	}
	p.step(kk, row)
	for v := 0; p.mask == nil && v < p.vecs*p.vecBytes(); v += line {
		switch {
		case p.kind.packing:
			row.Base, row.Disp = p.early, v
			p.PREFETCHT0(row)
		case kk == 0:
			p.PREFETCHT0(Mem{Base: p.b, Index: p.bs, Scale: ahead, Disp: v})
		}
	}
	if kk%2 == 1 {
		p.LEAQ(Mem{Base: p.b, Index: p.bs, Scale: 2}, p.b)
		if p.kind.packing {
			p.LEAQ(Mem{Base: p.early, Index: p.bs, Scale: 2}, p.early)
		}
	}
}

// step adds the products of a row of B and the column of A at step kk.
func (p *tilePanel) step(kk int, row Mem) {
	for v := range p.bv {
		m := row
		m.Disp += v * p.vecBytes()
		p.load(m, v, p.bv[v])
		if p.kind.packing {
			p.VMOVUPS(p.bv[v], Mem{Base: p.packed, Disp: kk*vectors*p.vecBytes() + v*p.vecBytes()})
		}
	}
	for i := range p.acc {
		if p.kind.braided && p.broadcasts(i) {
			for v := range p.bv {
				p.VFMADD231PS_BCST(p.at(i, kk), p.bv[v], p.acc[i][v])
			}
			continue
		}
		p.VBROADCASTSS(p.at(i, kk), p.av)
		for v := range p.bv {
			p.VFMADD231PS(p.bv[v], p.av, p.acc[i][v])
		}
	}
}

// addC adds the old contents of C if the parameter add is set.
func (p *tilePanel) addC() {
	p.write = p.label("write")
	p.Load(p.Param("c"), p.c)
	p.Load(p.Param("cs"), p.cs)
	add := p.GP8()
	p.Load(p.Param("add"), add)
	p.TESTB(add, add)
	p.JEQ(LabelRef(p.write))
	for i := range p.acc {
		for v := range p.acc[i] {
			m := Mem{Base: p.c, Disp: v * p.vecBytes()}
			if p.masked(v) {
				p.loadMasked(p.gen, m, p.mask, p.av)
				p.VADDPS(p.av, p.acc[i][v], p.acc[i][v])
			} else {
				p.VADDPS(m, p.acc[i][v], p.acc[i][v])
			}
		}
		if i < p.mr-1 {
			p.ADDQ(p.cs, p.c)
		}
	}
	p.Load(p.Param("c"), p.c)
}

// store writes the sums to C.
func (p *tilePanel) store() {
	p.Label(p.write)
	for i := range p.acc {
		for v := range p.acc[i] {
			m := Mem{Base: p.c, Disp: v * p.vecBytes()}
			switch {
			case p.masked(v):
				p.storeMasked(p.gen, p.acc[i][v], p.mask, m)
			case p.kind.streamed:
				p.VMOVNTPS(p.acc[i][v], m)
			default:
				p.VMOVUPS(p.acc[i][v], m)
			}
		}
		if i < p.mr-1 {
			p.ADDQ(p.cs, p.c)
		}
	}
}

// hints prefetches the lines of C that the tile writes and the lines of the next tile of A, early
// but not all at once: a burst would occupy all line fill buffers, which loads of B need too. Each
// panel prefetches its share of the next tile. If K is so small that prefetches come too late, no
// prefetch was measured to be better than a burst. The returned function writes the prefetches of
// one pass of the loop, for one row of the tile; b is an address that is in the cache.
func (g *gen) hints(mr, width int, b reg.GPVirtual, ofC bool) func() {
	at, by, next, ns, left := g.GP64(), g.GP64(), g.GP64(), g.GP64(), g.GP64()
	given, more := g.label("given"), g.label("more")
	if ofC {
		g.Load(g.Param("c"), at)
		g.Load(g.Param("cs"), by)
	} else {
		g.MOVQ(b, at)
		g.XORQ(by, by)
	}
	g.Load(g.Param("next"), next)
	g.Load(g.Param("ns"), ns)
	g.TESTQ(next, next)
	g.JNE(LabelRef(given))
	g.MOVQ(b, next)
	g.XORQ(ns, ns)
	g.Label(given)
	g.MOVQ(g.share, left)
	g.MOVQ(left, g.owed)
	g.IMUL3Q(I32(width), left, left)
	g.ADDQ(left, g.slot("next"))
	g.SHRQ(U8(2), left)
	g.SUBQ(left, g.ahead)
	g.JG(LabelRef(more))
	g.MOVQ(I32(0), g.slot("next"))
	g.Label(more)
	g.MOVQ(I32(mr), left)
	return func() {
		same, none := g.label("same"), g.label("none")
		for v := 0; v < width; v += line {
			g.PREFETCHT0(Mem{Base: at, Disp: v})
		}
		g.ADDQ(by, at)
		g.DECQ(left)
		g.JNE(LabelRef(same))
		g.MOVQ(b, at)
		g.XORQ(by, by)
		g.MOVQ(I32(mr), left)
		g.DECQ(g.owed)
		g.JLT(LabelRef(none))
		g.MOVQ(next, at)
		g.MOVQ(ns, by)
		g.ADDQ(I32(width), next)
		g.Label(none)
		g.Label(same)
	}
}

// shares computes the number of pieces (of the width of a panel) of each row of the next tile that
// a panel prefetches, so that the whole tile is prefetched after the last panel.
func (g *gen) shares() {
	g.share, g.owed, g.ahead = g.AllocLocal(8), g.AllocLocal(8), g.AllocLocal(8)
	n := g.GP64()
	g.Load(g.Param("k"), reg.RAX)
	g.Load(g.Param("n"), n)
	g.MOVQ(reg.RAX, g.ahead)
	g.LEAQ(Mem{Base: reg.RAX, Index: n, Scale: 1, Disp: -1}, reg.RAX)
	g.XORL(reg.EDX, reg.EDX)
	g.DIVQ(n)
	g.MOVQ(reg.RAX, g.share)
}
