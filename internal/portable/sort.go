//go:build !js || !nowebgpu

package portable

import (
	"math/bits"

	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// A workgroup sorts a run, which fits in workgroup memory, by Batcher's bitonic network over pairs
// of keys and columns. For longer rows, further launches merge pairs of sorted runs: each element
// finds its position by a binary search in the other run.

type sortOf struct{ Cols int }

type sortSchedule struct {
	Lanes int
	Run   int  // elements of a run, a power of two
	Radix bool // sort by digits instead: see radix.go
}

// radixItems is the number of elements of a tile that a lane sorts.
const radixItems = 8

var sortSchedules = table[sortOf, sortSchedule]{
	{"run64", func(m sortOf, _ *Target) bool { return m.Cols <= 64 }, sortSchedule{Lanes: 32, Run: 64}},
	{"run256", func(m sortOf, _ *Target) bool { return m.Cols <= 256 }, sortSchedule{Lanes: 128, Run: 256}},
	{"run1024", func(m sortOf, _ *Target) bool { return m.Cols <= 1024 }, sortSchedule{Lanes: 256, Run: 1024}},
	{"radix", func(m sortOf, t *Target) bool { return t.Votes && m.Cols > 2048 }, sortSchedule{Lanes: radixLanes, Radix: true}},
	{"run2048", func(sortOf, *Target) bool { return true }, sortSchedule{Lanes: 256, Run: 2048}},
}

func (w sortSchedule) can(_ sortOf, t *Target) bool { return !w.Radix || t.Votes }

type sortSpec struct {
	Type       op.DType
	Descending bool
	Merged     bool // the kernel merges runs, and writes keys and columns
	sortSchedule
}

// key returns the key of an element with the bits v: see [inputBits].
func (s *sortSpec) key(v kernel.U32) kernel.U32 {
	switch s.Type {
	case op.I32:
		v = v.Xor(kernel.U(0x80000000))
	case op.U32:
	default:
		v = keyOf(v)
	}
	if s.Descending {
		return v.Not()
	}
	return v
}

type sortParams struct {
	Cols uint32
	Runs uint32 // runs of a row
	All  uint32 // runs of all rows
}

// sortRuns sorts each run of each row.
var sortRuns = maker[sortParams, sortSpec]{name: "sort_runs", build: func(b *kernel.Builder, p *sortParams, s sortSpec, e *epilogue) {
	b.LocalSize(s.Lanes, 1, 1)
	x := inputBits(b, "x", s.Type)
	var keysOut kernel.Buffer[kernel.U32]
	var put func(i, v kernel.U32)
	if s.Merged {
		keysOut = kernel.Output[kernel.U32](b, "keys")
	} else {
		put = e.bits(b, s.Type)
	}
	places := kernel.Output[kernel.I32](b, "places")
	keys, cols := kernel.Shared[kernel.U32](b, "run_keys", s.Run), kernel.Shared[kernel.U32](b, "run_cols", s.Run)

	is := b.Group().Lt(b.U32(&p.All))
	group := kernel.Select(is, b.Group(), kernel.U(0))
	runs, n := b.U32(&p.Runs), b.U32(&p.Cols)
	row, at := group.Div(runs).Mul(n), group.Mod(runs).Mul(kernel.U(uint32(s.Run)))
	size := kernel.Select(is, n.Sub(at).Min(kernel.U(uint32(s.Run))), kernel.U(0))
	each := func(f func(i kernel.U32)) {
		for k := range s.Run / s.Lanes {
			f(b.LocalX().Add(kernel.U(uint32(k * s.Lanes))))
		}
	}
	each(func(i kernel.U32) {
		// Missing elements come last, because their column exceeds all others.
		key, col := kernel.NewVar(b, "key", kernel.U(1<<32-1)), kernel.NewVar(b, "col", kernel.U(1<<32-1))
		b.If(i.Lt(size), func() {
			key.Set(s.key(x(row.Add(at).Add(i))))
			col.Set(at.Add(i))
		})
		keys.Set(i, key.Get())
		cols.Set(i, col.Get())
	})
	b.Barrier()
	bitonic(b, s.sortSchedule, keys, cols)
	each(func(i kernel.U32) {
		b.If(i.Lt(size), func() {
			to, col := row.Add(at).Add(i), cols.At(i)
			if s.Merged {
				keysOut.Set(to, keys.At(i))
			} else {
				put(to, x(row.Add(col)))
			}
			places.Set(to, col.I32())
		})
	})
}}

// bitonic sorts pairs of keys and columns in workgroup memory.
func bitonic(b *kernel.Builder, w sortSchedule, keys, cols kernel.Array[kernel.U32]) {
	last := uint32(bits.Len(uint(w.Run)))
	one := kernel.U(1)
	b.For(one, kernel.U(last), func(stage kernel.U32) {
		b.For(kernel.U(0), stage, func(turn kernel.U32) {
			shift := stage.Sub(one).Sub(turn)
			distance := one.Shl(shift)
			for k := range w.Run / 2 / w.Lanes {
				pair := b.LocalX().Add(kernel.U(uint32(k * w.Lanes)))
				i := pair.Shr(shift).Shl(shift.Add(one)).Or(pair.And(distance.Sub(one)))
				j := i.Or(distance)
				down := i.Shr(stage).And(one).Ne(kernel.U(0))
				p, q, c, d := keys.At(i), keys.At(j), cols.At(i), cols.At(j)
				greater := p.Gt(q).Or(p.Eq(q).And(c.Gt(d)))
				b.If(greater.And(down.Not()).Or(greater.Not().And(down)), func() {
					keys.Set(i, q)
					keys.Set(j, p)
					cols.Set(i, d)
					cols.Set(j, c)
				})
			}
			b.Barrier()
		})
	})
}

type mergeParams struct {
	N    uint32 // elements of all rows
	Cols uint32
	Run  uint32 // elements of a sorted run
}

type mergeSpec struct {
	Type op.DType
	Last bool // the kernel writes values instead of keys
}

const mergeLanes = 256

// sortMerge merges the runs of each row in pairs.
var sortMerge = maker[mergeParams, mergeSpec]{name: "sort_merge", build: func(b *kernel.Builder, p *mergeParams, s mergeSpec, e *epilogue) {
	b.LocalSize(mergeLanes, 1, 1)
	keys, places := kernel.Input[kernel.U32](b, "keys"), kernel.Input[kernel.I32](b, "places")
	var x func(i kernel.U32) kernel.U32
	var put func(i, v kernel.U32)
	if s.Last {
		x = inputBits(b, "x", s.Type)
		put = e.bits(b, s.Type)
	} else {
		put = kernel.Output[kernel.U32](b, "merged_keys").Set
	}
	merged := kernel.Output[kernel.I32](b, "merged_places")
	n, run := b.U32(&p.Cols), b.U32(&p.Run)
	g := b.Index()
	b.If(g.Lt(b.U32(&p.N)), func() {
		row := g.Div(n).Mul(n)
		i := g.Sub(row)
		mine := i.Div(run)
		second := mine.And(kernel.U(1)).Ne(kernel.U(0))
		first := mine.And(kernel.U(1).Not()).Mul(run) // position of the pair
		start := kernel.Select(second, first, first.Add(run).Min(n))
		end := start.Add(run).Min(n)
		key := keys.At(g)
		// If keys are equal, the elements of the first run come first.
		low, high := kernel.NewVar(b, "low", start), kernel.NewVar(b, "high", end)
		b.While(func() kernel.Bool { return low.Get().Lt(high.Get()) }, func() {
			middle := low.Get().Add(high.Get()).Shr(kernel.U(1))
			other := keys.At(row.Add(middle))
			b.If(other.Lt(key).Or(other.Eq(key).And(second)), func() {
				low.Set(middle.Add(kernel.U(1)))
			}).Else(func() { high.Set(middle) })
		})
		to := row.Add(first).Add(i.Sub(mine.Mul(run))).Add(low.Get().Sub(start))
		place := places.At(g)
		if s.Last {
			put(to, x(row.Add(place.U32())))
		} else {
			put(to, key)
		}
		merged.Set(to, place)
	})
}}

// radixRows adds the launches of a radix sort of the rows.
func (p *planner) radixRows(q *request, rows, cols int) {
	r := &radixSort{rows: rows, cols: cols, bits: 32, radixSpec: radixSpec{Type: q.In[0].Type, Keys: keysOfRow, Items: radixItems}}
	if op.SortOptsOf(&q.Attrs).Descending {
		r.Keys = keysOfMost
	}
	p.radixSorted(r, q.inputs()[0], q.outputs())
}

func planSort(q *request) (*Plan, error) {
	rows, cols := q.In[0].Shape.Rows()
	w, name, err := sortSchedules.choose(q, sortOf{cols})
	if err != nil {
		return nil, err
	}
	var p planner
	n := rows * cols
	if n == 0 {
		return p.done(name)
	}
	if w.Radix {
		p.radixRows(q, rows, cols)
		return p.done(name)
	}
	runs := (cols-1)/w.Run + 1
	s := sortSpec{q.In[0].Type, op.SortOptsOf(&q.Attrs).Descending, runs > 1, w}
	params := sortParams{uint32(cols), uint32(runs), uint32(rows * runs)}
	grid := kernel.GridOf(rows * runs)
	if runs == 1 {
		p.stage(sortRuns.of(s, nil), grid, params, append(q.inputs(), q.outputs()...)...)
		return p.done(name)
	}
	var halves [2][2]Ref // keys and positions
	for i := range halves {
		halves[i] = [2]Ref{p.scratch(n), p.scratch(n)}
	}
	p.stage(sortRuns.of(s, nil), grid, params, q.inputs()[0], halves[0][0], halves[0][1])
	for i, run := 0, w.Run; run < cols; i, run = 1-i, 2*run {
		m := mergeSpec{Type: q.In[0].Type, Last: 2*run >= cols}
		bind := []Ref{halves[i][0], halves[i][1]}
		if m.Last {
			bind = append(append(bind, q.inputs()...), q.outputs()...)
		} else {
			m.Type = op.U32
			bind = append(bind, halves[1-i][0], halves[1-i][1])
		}
		p.stage(sortMerge.of(m, nil), kernel.GridFor(n, mergeLanes), mergeParams{uint32(n), uint32(cols), uint32(run)}, bind...)
	}
	return p.done(name)
}
