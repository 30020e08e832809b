//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

type topKOf struct{ Rows, Cols, K int }

// topKSchedule is the schedule of a topk. A lane group finds the greatest elements by k searches,
// one after the other. With Rank, it instead counts for each element how many elements come before
// it.
type topKSchedule struct {
	groupLayout
	Held   int // elements that a lane holds in registers; 0 if it holds none
	Rank   bool
	Sorted bool // a radix sort sorts the row: see radix.go
}

var topKSchedules = table[topKOf, topKSchedule]{
	{"rank", func(m topKOf, t *Target) bool { return m.Cols <= rankMax && m.K >= 16 }, topKSchedule{groupLayout: groupLayout{GroupLanes: 256, Groups: 1}, Rank: true}},
	{"radix", func(m topKOf, t *Target) bool { return t.Votes && TopKSorts(m.K, m.Cols) }, topKSchedule{Sorted: true}},
	{"held-subgroups", func(m topKOf, t *Target) bool { return t.Subgroups && m.Cols <= 8*256 }, topKSchedule{groupLayout: groupLayout{GroupLanes: 256, Groups: 1, Subgroups: true}, Held: 8}},
	{"held", func(m topKOf, t *Target) bool { return m.Cols <= 8*256 }, topKSchedule{groupLayout: groupLayout{GroupLanes: 256, Groups: 1}, Held: 8}},
	{"loop-subgroups", func(m topKOf, t *Target) bool { return t.Subgroups }, topKSchedule{groupLayout: groupLayout{GroupLanes: 256, Groups: 1, Subgroups: true}, Held: 0}},
	{"loop", func(topKOf, *Target) bool { return true }, topKSchedule{groupLayout: groupLayout{GroupLanes: 256, Groups: 1}, Held: 0}},
}

type topKParams struct{ Rows, Cols, K uint32 }

type topKSpec struct {
	Type op.DType
	topKSchedule
}

var topKs = maker[topKParams, topKSpec]{name: "topk", build: func(b *kernel.Builder, p *topKParams, s topKSpec, _ *epilogue) {
	t := newLaneGroup(b, s.groupLayout)
	x := input(b, "x", s.Type)
	values, places := outputValue(b, "values", s.Type), kernel.Output[kernel.I32](b, "places")
	r := newSearched(t, b.U32(&p.Rows), b.U32(&p.Cols), s.Held, x)
	k := b.U32(&p.K)
	put := func(i, j kernel.U32) {
		to := t.number.Mul(k).Add(i)
		values.set(to, kernel.Dyn(x(r.start.Add(j))))
		places.Set(to, j.I32())
	}
	if s.Rank {
		rank(r, k, put)
	} else {
		search(r, k, put)
	}
}}

// search finds the k greatest elements of a row one after the other: in each step, the greatest of
// the elements that come after the last one found.
func search(r *searched, k kernel.U32, put func(i, j kernel.U32)) {
	const none = 1<<31 - 1
	b, t := r.b, r.t
	last := kernel.NewVar(b, "last", kernel.U(nanKey))
	at := kernel.NewVar(b, "at", kernel.U(none)) // position of the last element found; every element comes after the initial value
	// Each iteration has two reductions, so that the next iteration begins with the half of
	// workgroup memory that no lane is still reading.
	b.For(kernel.U(0), k, func(i kernel.U32) {
		best := kernel.NewVar(b, "best", kernel.U(0))
		place := kernel.NewVar(b, "place", kernel.U(none))
		r.each(func(j kernel.U32, x kernel.F32) {
			key := keyOf(x.AsU32())
			after := key.Lt(last.Get()).Or(key.Eq(last.Get()).And(j.Gt(at.Get()).Or(at.Get().Eq(kernel.U(none)))))
			b.If(after.And(key.Gt(best.Get())), func() {
				best.Set(key)
				place.Set(j)
			})
		})
		last.Set(t.max(best.Get()))
		at.Set(t.min(kernel.Select(best.Get().Eq(last.Get()), place.Get(), kernel.U(none))))
		b.If(t.lane.Eq(kernel.U(0)).And(r.cols.Gt(kernel.U(0))), func() { put(i, at.Get()) })
	})
}

// rank counts for each element how many come before it.
func rank(r *searched, k kernel.U32, put func(i, j kernel.U32)) {
	b := r.b
	keys := kernel.Shared[kernel.U32](b, "row_keys", rankMax)
	r.each(func(j kernel.U32, x kernel.F32) { keys.Set(j, keyOf(x.AsU32())) })
	b.Barrier()
	r.each(func(j kernel.U32, _ kernel.F32) {
		key := keys.At(j)
		before := kernel.NewVar(b, "before", kernel.U(0))
		b.For(kernel.U(0), r.cols, func(i kernel.U32) {
			other := keys.At(i)
			before.Set(before.Get().Add(other.Gt(key).Or(other.Eq(key).And(i.Lt(j))).U32()))
		})
		b.If(before.Get().Lt(k), func() { put(before.Get(), j) })
	})
}

// topKTakes writes the first elements of sorted rows. A lane writes one of them.
var topKTakes = maker[topKParams, topKSpec]{name: "topk_take", build: func(b *kernel.Builder, p *topKParams, s topKSpec, _ *epilogue) {
	b.LocalSize(radixLanes, 1, 1)
	sorted, x := kernel.Input[kernel.U32](b, "sorted_places"), input(b, "x", s.Type)
	values, places := outputValue(b, "values", s.Type), kernel.Output[kernel.I32](b, "places")
	i, k := b.Index(), b.U32(&p.K)
	b.If(i.Lt(b.U32(&p.Rows).Mul(k)), func() {
		first := i.Div(k).Mul(b.U32(&p.Cols))
		place := sorted.At(first.Add(i.Mod(k)))
		values.set(i, kernel.Dyn(x(first.Add(place))))
		places.Set(i, place.I32())
	})
}}

// can reports whether the schedule can compute m, at any speed.
func (w topKSchedule) can(m topKOf, t *Target) bool {
	switch {
	case w.Sorted:
		return t.Votes
	case w.Rank:
		return m.Cols <= rankMax
	}
	return (!w.Subgroups || t.Subgroups) && (w.Held == 0 || m.Cols <= w.Held*w.GroupLanes)
}

func planTopK(q *request) (*Plan, error) {
	m := topKOf{K: op.TopKOptsOf(&q.Attrs).K}
	m.Rows, m.Cols = q.In[0].Shape.Rows()
	w, name, err := topKSchedules.choose(q, m)
	if err != nil {
		return nil, err
	}
	params := topKParams{uint32(m.Rows), uint32(m.Cols), uint32(m.K)}
	var p planner
	if w.Sorted {
		r := &radixSort{rows: m.Rows, cols: m.Cols, bits: 32, radixSpec: radixSpec{Type: q.In[0].Type, Keys: keysOfMost, Items: radixItems}}
		_, places := p.radixSorted(r, q.inputs()[0], nil)
		p.stage(topKTakes.of(topKSpec{q.In[0].Type, w}, nil), kernel.GridFor(m.Rows*m.K, radixLanes), params, append([]Ref{places}, append(q.inputs(), q.outputs()...)...)...)
		return p.done(name)
	}
	p.stage(topKs.of(topKSpec{q.In[0].Type, w}, nil), w.groups(m.Rows), params, append(q.inputs(), q.outputs()...)...)
	return p.done(name)
}

// searched is the row in which a lane group searches. A lane group may have no row.
type searched struct {
	b     *kernel.Builder
	t     *laneGroup
	x     func(i kernel.U32) kernel.F32
	start kernel.U32
	cols  kernel.U32   // 0 if the lane group has no row
	held  []kernel.F32 // the lane's elements, if the lane holds them
}

// newSearched returns the row of a lane group. x reads an element of the row.
func newSearched(t *laneGroup, rows, cols kernel.U32, held int, x func(i kernel.U32) kernel.F32) *searched {
	b := t.b
	is := t.number.Lt(rows)
	r := &searched{b: b, t: t, x: x, cols: kernel.Select(is, cols, kernel.U(0))}
	r.start = kernel.Select(is, t.number, kernel.U(0)).Mul(cols)
	for k := range held {
		j := r.place(k)
		v := kernel.NewVar(b, "x", kernel.F(0))
		b.If(j.Lt(r.cols), func() { v.Set(x(r.start.Add(j))) })
		r.held = append(r.held, v.Get())
	}
	return r
}

// place returns the position in the row of element k of the lane's elements.
func (r *searched) place(k int) kernel.U32 { return r.t.lane.Add(kernel.U(uint32(k * r.t.GroupLanes))) }

// each runs f for the lane's elements. j is the position in the row.
func (r *searched) each(f func(j kernel.U32, x kernel.F32)) {
	for k, x := range r.held {
		j := r.place(k)
		r.b.If(j.Lt(r.cols), func() { f(j, x) })
	}
	if len(r.held) == 0 {
		r.b.ForStep(r.t.lane, r.cols, kernel.U(uint32(r.t.GroupLanes)), func(j kernel.U32) { f(j, r.x(r.start.Add(j))) })
	}
}
