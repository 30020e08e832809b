package ptxkernels

import "github.com/rayo-go/rayo/ptx"

// Of the longest rows a multiprocessor has only one at a time, and nothing would
// be read while it computes and stores. So there is one block for each
// multiprocessor, which goes from row to row, and what of the next row there is
// room for comes while this one is there: the first parts of it to slots in shared
// memory from which they go on to registers when it is its turn, and those that
// stay in shared memory to the slots of the parts of this row that are stored.
// Each thread copies and reads its own elements alone: nobody waits for others,
// but in reductions.

// rowStream is the slots of a thread and what is under way to them.
type rowStream struct {
	t     *rowGroup
	x     ptx.Global[ptx.B32]
	slots ptx.Shared[ptx.B32]
	early int // parts that come through slots to registers
	next  *residentRow
}

// slot returns the slot of a part that comes through one or stays in one.
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

// stream runs f for the rows of the block, one after the other: each is held when
// f begins.
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
		// That there is a row is known, and said, as loads that are predicated keep
		// what was in their registers before.
		r.is = ptx.Is(true)
		g.next = t.newResidentRow(number.Add(step), t.nrows, t.cols)
		r.parts, r.stream = make([]rowPart, parts), g
		r.loadRegisters(x, t, neutral, g.early)
		for p := range g.early {
			k.CopyWait(s.Ring - 1) // all that came behind it
			r.setRegisters(p, r.words(g.slot(p), p, neutral), neutral)
			g.issue(p)
		}
		for p := s.Registers; p < parts; p++ {
			r.parts[p].slot = g.slot(p)
			r.parts[p].behind = g.early + parts - 1 - p
		}
		f(r)
		// The reductions of a row use an array each. Where there is one alone, who is
		// ahead shall not write what others still read.
		if t.reduced == 1 {
			k.Sync()
		}
		t.reduced = 0
	})
	k.CopyWaitAll()
}
