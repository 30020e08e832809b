package ptxkernels

import (
	"math"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/ptx"
)

// Several blocks share a row that is too long for one block, and also long rows if they are few.
// Each block computes the partial of its part, writes it to memory, and waits until all blocks of
// the row have written theirs. This needs all blocks of a row to run at the same time. So blocks
// take their parts in the order in which they start: a block waits only for blocks of its own row,
// and these start before any block of a later row. Then at most the blocks of one row wait for a
// block that has not started, and there is no deadlock if that many blocks fit on the device,
// together with blocks of other launches that wait in the same way. Longer rows are read twice, in
// two launches.

// rowParts says which work a block does.
type rowParts uint8

const (
	wholeRows      rowParts = iota // a block processes whole rows
	allOfParts                     // a block processes a part, and waits for the other parts
	firstOfParts                   // a block computes the partial of a part and writes it
	secondOfParts                  // a block reads the partials and processes a part
	clusterOfParts                 // the blocks of a cluster process the parts of a row
)

// maxRowParts is the largest number of parts that may wait for each other.
const maxRowParts = 48

// planRowParts plans an operation on rows of several parts. w is the schedule of a part.
func planRowParts(r *portable.Request, w rowSchedule, parts int, twice bool) (*Plan, error) {
	rows, cols := r.In[0].Shape.Rows()
	e, err := finish(r, cols)
	if err != nil {
		return nil, err
	}
	s, each := partsOfRow(r, w, parts)
	s.Parts = allOfParts
	p := &Plan{Variant: w.name() + "-parts", InPlace: s.inPlace(r)}
	args, states := rowArgs(r, &s, p, e, rows, cols)
	n := len(p.Scratch)
	p.Scratch = append(p.Scratch, int64(4*rows*parts*states), int64(4*(1+rows)))
	args = append(args, word(uint32(parts)), word(uint32(each)), scratch(n), scratch(n+1))
	grid := [3]uint32{uint32(rows * parts), 1, 1}
	if !twice {
		p.Stages = append(p.Stages, Stage{Kernel: s.kernel(e), Grid: grid, Args: args, Zero: n + 1})
		return p, nil
	}
	for _, s.Parts = range []rowParts{firstOfParts, secondOfParts} {
		p.Stages = append(p.Stages, Stage{Kernel: s.kernel(e), Grid: grid, Args: args, Zero: -1})
	}
	return p, nil
}

// rowVectors returns the largest number of vectors that a row touches.
func rowVectors(cols, width int) int {
	if cols%width != 0 {
		cols += width - 1
	}
	return (cols-1)/width + 1
}

// newPart computes the row and the part of the block, and declares the parameters for them.
func (t *rowGroup) newPart() {
	if t.s.Parts == clusterOfParts {
		t.newClusterPart()
		return
	}
	k := t.k
	t.parts, t.each = ptx.Param[ptx.U32](k, "parts"), ptx.Param[ptx.U32](k, "each")
	states, counters := ptx.GlobalParam[ptx.U32](k, "states"), ptx.GlobalParam[ptx.U32](k, "counters")
	number := k.Special(ptx.CtaidX)
	if t.s.Parts == allOfParts {
		ticket := ptx.SharedArray[ptx.U32](k, "ticket", 1)
		k.If(t.tid.Eq(ptx.U(0)), func() { ticket.Store(ptx.AtomicAdd(counters, ptx.U(1))) })
		k.Sync()
		number = ticket.Load()
	}
	t.row = number.Div(t.parts)
	t.part = number.Sub(t.row.Mul(t.parts))
	t.states, t.counter = states.At(t.row.Mul(t.parts)), counters.At(t.row).Offset(1)
}

// size returns the number of resident elements of a row.
func (t *rowGroup) size(r *residentRow) ptx.U32 {
	if t.s.Parts == wholeRows {
		return r.cols
	}
	width := ptx.N(t.s.Width)
	from := t.part.Mul(t.each).Mul(width)
	to := from.Add(t.each.Mul(width))
	// Convert to indices in the row: the first vector may begin before it.
	from = from.Max(r.skip).Sub(r.skip).Min(r.cols)
	to = to.Max(r.skip).Sub(r.skip).Min(r.cols)
	return to.Sub(from)
}

// publish stores the partial of the block for the other blocks of the row.
func (t *rowGroup) publish(mine []ptx.B32, rows ptx.U32) {
	k, s := t.k, t.s
	k.If(t.tid.Eq(ptx.U(0)), func() {
		to := t.states.At(t.part)
		for i := range mine {
			to.At(rows.Mul(ptx.N(i))).Store(mine[i].U32())
		}
		if s.Parts == allOfParts {
			k.FenceDevice()
			ptx.ReduceAdd(t.counter, ptx.U(1))
		}
	})
}

// combine returns the combination of all partials of the row. Each warp combines them in the same
// order.
func (t *rowGroup) combine(merge func(a, b []ptx.B32) []ptx.B32, words int, rows ptx.U32) []ptx.B32 {
	k := t.k
	lane := t.tid.And(ptx.U(31))
	load := func(p ptx.U32) []ptx.B32 {
		v := make([]ptx.B32, words)
		for i := range v {
			v[i] = t.states.At(p).At(rows.Mul(ptx.N(i))).Hint(ptx.L2Only).Load().B32()
		}
		return v
	}
	// Lanes without a part start with the neutral partial.
	vars := make([]ptx.Var[ptx.B32], words)
	for i := range vars {
		vars[i] = ptx.NewVar(k, ptx.B(0))
		if words == 2 && i == 0 {
			vars[i].Set(ptx.B(math.Float32bits(float32(math.Inf(-1)))))
		}
	}
	get := func() (v []ptx.B32) {
		for _, x := range vars {
			v = append(v, x.Get())
		}
		return v
	}
	k.For(lane, t.parts, ptx.U(32), func(p ptx.U32) {
		for i, x := range merge(get(), load(p)) {
			vars[i].Set(x)
		}
	})
	all := get()
	for d := 16; d > 0; d /= 2 {
		other := make([]ptx.B32, words)
		for i := range other {
			other[i] = ptx.ShuffleXor(all[i], ptx.N(d))
		}
		all = merge(all, other)
	}
	for i := range all {
		all[i] = ptx.ShuffleIndex(all[i], ptx.U(0))
	}
	return all
}

// exchange publishes the block's partial and returns the combination of the partials of all blocks
// of the row. ok is false for firstOfParts, which only publishes.
func (t *rowGroup) exchange(mine []ptx.B32, merge func(a, b []ptx.B32) []ptx.B32, words int) (all []ptx.B32, ok bool) {
	k, s := t.k, t.s
	if s.Parts == clusterOfParts {
		return t.tell(mine, merge), true
	}
	// The array has the first words of all partials, then the second words, and so on.
	rows := t.nrows.Mul(t.parts)
	if s.Parts != secondOfParts {
		t.publish(mine, rows)
		if s.Parts == firstOfParts {
			return nil, false
		}
		k.If(t.tid.Eq(ptx.U(0)), func() {
			k.Loop(func() {
				k.BreakIf(t.counter.Hint(ptx.Ordered).Load().Ge(t.parts))
				k.Sleep(ptx.U(20))
			})
		})
		k.Sync()
	}
	return t.combine(merge, words, rows), true
}
