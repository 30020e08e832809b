package kernels

import "github.com/rayo-go/rayo/ptx"

// Of the longest rows a multiprocessor has only one at a time, and nothing would
// be read while it computes and stores. So there is one block for each
// multiprocessor, which goes from row to row, and what it reads comes through a
// ring of slots in shared memory: the first parts of a row go on to registers, the
// others stay, and each slot that is free again is filled at once, with what comes
// next of this row or the next one. Each thread copies and reads its own elements
// alone: nobody waits for others, but in reductions.

// rowRing is the slots of a thread.
type rowRing struct {
	t      *rowTeam
	x      ptx.Global[ptx.B32]
	base   ptx.Shared[ptx.B32]
	head   ptx.U32 // the slot of part 0 of the row
	row    *heldRow
	next   *heldRow
	issued int // parts of the row and the next one that are under way or there
}

// slot returns the slot of a part, counted from part 0 of the row.
func (g *rowRing) slot(p int) ptx.Shared[ptx.B32] {
	n := g.t.s.Ring
	i := g.head.Add(ptx.N(p % n))
	i = ptx.Select(i.Ge(ptx.N(n)), i.Sub(ptx.N(n)), i)
	return g.base.At(i.Mul(ptx.N(4 * g.t.s.threads())))
}

// issue starts to copy the part that comes next.
func (g *rowRing) issue() {
	s, k := g.t.s, g.t.k
	r, p := g.row, g.issued
	slot := g.slot(p)
	if n := s.Registers + s.Shared; p >= n {
		r, p = g.next, p-n
	}
	at := r.first.Add(r.place).Add(ptx.N(p * s.Lanes))
	src := g.x.At(at.Mul(ptx.U(4)))
	if !s.Shift || p < s.Whole {
		k.When(r.in(p), func() { ptx.CopyAsync(slot, src, 16) })
	} else {
		bytes := g.t.all.Sub(at.Mul(ptx.N(s.Width))).Min(ptx.N(s.Width)).Mul(ptx.N(s.Type.Size()))
		k.When(r.in(p), func() { ptx.CopyAsyncZero(slot, src, 16, bytes) })
	}
	k.CopyCommit()
	g.issued++
}

// arrive waits for part p.
func (g *rowRing) arrive(p int) { g.t.k.CopyWait(g.issued - p - 1) }

// stream runs f for the rows of the block, one after the other: each is held when
// f begins.
func (t *rowTeam) stream(x ptx.Global[ptx.B32], neutral float32, f func(r *heldRow)) {
	s, k := t.s, t.k
	parts := s.Registers + s.Shared
	base := ptx.DynamicShared[ptx.B32](k, 4*s.threads()*s.Ring).At(t.tid.Mul(ptx.U(4)))
	head := ptx.NewVar(k, ptx.U(0))
	step := k.Special(ptx.NctaidX)
	first := k.Special(ptx.CtaidX)
	begin := &rowRing{t: t, x: x, base: base, row: t.newHeldRow(first, t.nrows, t.cols)}
	begin.next = begin.row
	for begin.issued < s.Ring {
		if begin.issued == parts {
			begin.next = t.newHeldRow(first.Add(step), t.nrows, t.cols)
		}
		begin.issue()
	}
	k.For(first, t.nrows, step, func(number ptx.U32) {
		g := &rowRing{t: t, x: x, base: base, head: head.Get(), issued: s.Ring}
		g.row, g.next = t.newHeldRow(number, t.nrows, t.cols), t.newHeldRow(number.Add(step), t.nrows, t.cols)
		r := g.row
		r.parts, r.ring, r.arrived = make([]rowPart, parts), g, map[int]bool{}
		for p := range s.Registers {
			g.arrive(p)
			raw := r.words(g.slot(p), p, neutral)
			if s.Packed {
				r.parts[p].packed = raw
			} else {
				r.parts[p].values = r.masked(p, unpackRow(s.Type, raw), neutral)
			}
			g.issue()
		}
		for p := s.Registers; p < parts; p++ {
			r.parts[p].slot = g.slot(p)
		}
		f(r)
		// The reductions of a row use an array each. Where there is one alone, who is
		// ahead shall not write what others still read.
		if t.reduced == 1 {
			k.Sync()
		}
		t.reduced = 0
		next := head.Get().Add(ptx.N(parts % s.Ring))
		head.Set(ptx.Select(next.Ge(ptx.N(s.Ring)), next.Sub(ptx.N(s.Ring)), next))
	})
	k.CopyWaitAll()
}
