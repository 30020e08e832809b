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

// ahead is the prefetch distance of rows of B in steps of k, with one prefetch for each pass.
// Prefetching every row was measured to be slower if B is packed, and much slower if it is not,
// because rows that are a power of two apart evict each other from the first-level cache.
const ahead = 8

// earlyRows is how many steps of k before its use a row of B is asked for that
// comes from outside the caches: a multiple of 8.
const earlyRows = 24

// tile writes the kernel for mr rows: it walks over panels of B that are two
// vectors wide and leaves the last, narrower one to masked bodies.
//
// The elements of A are broadcast to a register of their own rather than in
// each multiplication: as operands they would be loads as many as
// multiplications, and the load ports are as few as the multipliers. For the
// mean of both see tileBraid.
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
	braided  bool // the elements of a column of A lie side by side
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
	g.tallest("Stream", "tileFunc of the largest tile for rows of C that begin at a multiple of 64 bytes", "", tileKind{streamed: true})
}

// tileBraid writes the kernels of the tallest tile for a braided A. A braided A has its elements in
// the order of use, so that addresses need no index register: a multiplication with a broadcast
// memory operand is then one micro-operation instead of two. This matters if a core runs two
// threads, because each gets half of the front end's throughput, which is not enough otherwise.
func (g *gen) tileBraid() {
	g.tallest("Braid", "tileFunc of the largest tile for a braided A: as means nothing", "", tileKind{braided: true})
	g.tallest("BraidPack", "tilePackFunc for a braided A: as means nothing", ", packed *float32", tileKind{braided: true, packing: true})
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
func (g *gen) panel(mr, vecs int, mask reg.Register, kind tileKind) {
	pack := kind.packing
	load := func(m Mem, i int, v reg.Register) {
		if mask != nil && i == vecs-1 {
			g.loadMasked(g, m, mask, v)
		} else {
			g.VMOVUPS(m, v)
		}
	}
	vecBytes := 4 * g.lanes()

	a := g.GP64()
	g.Load(g.Param("a"), a)
	at := func(i, kk int) Mem { return Mem{Base: a, Disp: 4 * (kk*g.lanes() + i)} }
	advance := func(steps int) { g.ADDQ(I32(4*steps*g.lanes()), a) }
	if !kind.braided {
		as := g.GP64()
		g.Load(g.Param("as"), as)
		row, move := g.rowAddresses(a, as, mr)
		at = func(i, kk int) Mem { return row(i, 4*kk) }
		advance = func(steps int) { move(I8(4 * steps)) }
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

	b, bs, c, cs, k := g.GP64(), g.GP64(), g.GP64(), g.GP64(), g.GP64()
	g.Load(g.Param("b"), b)
	g.Load(g.Param("k"), k)
	hints := g.hints(mr, vecs*vecBytes, b, !kind.streamed)
	g.Load(g.Param("bs"), bs)
	var packed, early reg.GPVirtual
	if pack {
		packed, early = g.GP64(), g.GP64()
		g.Load(g.Param("packed"), packed)
		g.LEAQ(Mem{Base: b, Index: bs, Scale: 8}, early)
		for i := 8; i < earlyRows; i += 8 {
			g.LEAQ(Mem{Base: early, Index: bs, Scale: 8}, early)
		}
	}

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
			if pack {
				g.VMOVUPS(bv[v], Mem{Base: packed, Disp: kk*vectors*vecBytes + v*vecBytes})
			}
		}
		for i := range acc {
			if kind.braided && g.broadcasts(i) {
				for v := range bv {
					g.VFMADD231PS_BCST(at(i, kk), bv[v], acc[i][v])
				}
				continue
			}
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
		if kk%2 == 1 {
			row.Index, row.Scale = bs, 1
		}
		step(kk, row)
		for v := 0; mask == nil && v < vecs*vecBytes; v += line {
			switch {
			case pack:
				row.Base, row.Disp = early, v
				g.PREFETCHT0(row)
			case kk == 0:
				g.PREFETCHT0(Mem{Base: b, Index: bs, Scale: ahead, Disp: v})
			}
		}
		if kk%2 == 1 {
			g.LEAQ(Mem{Base: b, Index: bs, Scale: 2}, b)
			if pack {
				g.LEAQ(Mem{Base: early, Index: bs, Scale: 2}, early)
			}
		}
	}
	hints()
	advance(unroll)
	if pack {
		g.ADDQ(I32(unroll*vectors*vecBytes), packed)
	}
	g.SUBQ(I8(unroll), k)
	g.JGE(LabelRef(loop))

	g.Label(rest)
	g.ADDQ(I8(unroll), k)
	g.JEQ(LabelRef(store))
	g.Label(last)
	step(0, Mem{Base: b})
	advance(1)
	if pack {
		g.ADDQ(I32(vectors*vecBytes), packed)
	}
	g.ADDQ(bs, b)
	g.DECQ(k)
	g.JNE(LabelRef(last))

	g.Label(store)
	if pack {
		g.MOVQ(packed, g.slot("packed"))
	}
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
			switch {
			case mask != nil && v == vecs-1:
				g.storeMasked(g, acc[i][v], mask, m)
			case kind.streamed:
				g.VMOVNTPS(acc[i][v], m)
			default:
				g.VMOVUPS(acc[i][v], m)
			}
		}
		if i < mr-1 {
			g.ADDQ(cs, c)
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

// shares finds out how many pieces of each row of the next tile, as wide as a panel,
// a panel asks for: as many as make the tile whole after the last panel.
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
