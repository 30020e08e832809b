package ptxkernels

import "github.com/rayo-go/rayo/ptx"

// A multiprocessor holds only one of the longest rows at a time, and would read nothing while it
// computes and stores. So each multiprocessor runs one persistent block that iterates over rows and
// prefetches as much of the next row as fits. The first parts of the next row go to extra slots in
// shared memory, and move to registers when the row is processed. The parts that stay in shared
// memory go to the slots of the current row as soon as its parts are stored. Each thread copies and
// reads only its own elements, so only reductions need barriers.

// rowStream holds the slots of a thread and the row that is prefetched to them.
type rowStream struct {
	t     *rowGroup
	x     ptx.Global[ptx.B32]
	slots ptx.Shared[ptx.B32]
	early int // parts that go through slots to registers
	next  *residentRow
}

// slot returns the slot of a part that goes through one or stays in one.
func (g *rowStream) slot(p int) ptx.Shared[ptx.B32] {
	if p >= g.t.s.Registers {
		p += g.early - g.t.s.Registers
	}
	return g.slots.Offset(4 * g.t.s.threads() * p)
}

// issue starts to copy a part of the next row.
func (g *rowStream) issue(p int) {
	g.next.copyAll(g.slot(p), g.x, p, g.t.all)
	g.t.k.CopyCommit()
}

// stream runs f for the rows of the block, one after the other. A row is resident when f begins.
func (t *rowGroup) stream(x ptx.Global[ptx.B32], neutral float32, f func(r *residentRow)) {
	s, k := t.s, t.k
	parts := s.Registers + s.Shared
	g := &rowStream{t: t, x: x, early: s.Ring - s.Shared}
	g.slots = ptx.DynamicShared[ptx.B32](k, 4*s.threads()*s.Ring).At(t.tid.Mul(ptx.U(4)))
	step, first := k.Special(ptx.NctaidX), k.Special(ptx.CtaidX)
	g.next = t.newResidentRow(first, t.nrows, t.cols)
	for p := range parts {
		if p < g.early || p >= s.Registers {
			g.issue(p)
		}
	}
	k.For(first, t.nrows, step, func(number ptx.U32) {
		r := t.newResidentRow(number, t.nrows, t.cols)
		// The row always exists. A constant predicate removes the predicated loads, which keep the
		// old contents of their registers alive.
		r.is = ptx.Is(true)
		g.next = t.newResidentRow(number.Add(step), t.nrows, t.cols)
		r.parts, r.stream = make([]rowPart, parts), g
		r.loadRegisters(x, t, neutral, g.early)
		for p := range g.early {
			k.CopyWait(s.Ring - 1) // s.Ring-1 later copies may still be in flight
			r.setRegisters(p, r.words(g.slot(p), p, neutral), neutral)
			g.issue(p)
		}
		for p := s.Registers; p < parts; p++ {
			r.parts[p].slot = g.slot(p)
			r.parts[p].behind = g.early + parts - 1 - p
		}
		f(r)
		// Each reduction of a row has its own array. If there is only one, a fast warp must not
		// overwrite it for the next row while others still read it.
		if t.reduced == 1 {
			k.Sync()
		}
		t.reduced = 0
	})
	k.CopyWaitAll()
}
