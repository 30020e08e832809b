package lib

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

func init() { register(&family{plan: planTopK, variants: topKWays.names()}, op.TopK) }

type topKOf struct{ Rows, Cols, K int }

// topKWay is how the greatest elements are found: one after the other by as many
// searches, or all at once by counting for each element how many come before it.
type topKWay struct {
	rowWay
	Rank bool
}

const rankMax = 1024 // elements of a row that are ranked: in workgroup memory

var topKWays = table[topKOf, topKWay]{
	{"rank", func(m topKOf, t *Target) bool { return m.Cols <= rankMax && m.K >= 16 }, topKWay{rowWay{crew: crew{256, 1, false}}, true}},
	{"held-subgroups", func(m topKOf, t *Target) bool { return t.Subgroups && m.Cols <= 8*256 }, topKWay{rowWay{crew{256, 1, true}, 8}, false}},
	{"held", func(m topKOf, t *Target) bool { return m.Cols <= 8*256 }, topKWay{rowWay{crew{256, 1, false}, 8}, false}},
	{"loop-subgroups", func(m topKOf, t *Target) bool { return t.Subgroups }, topKWay{rowWay{crew{256, 1, true}, 0}, false}},
	{"loop", func(topKOf, *Target) bool { return true }, topKWay{rowWay{crew{256, 1, false}, 0}, false}},
}

type topKParams struct{ Rows, Cols, K uint32 }

type topKSpec struct {
	Type op.DType
	topKWay
}

var topKs = newMaker("topk", func(b *kernel.Builder, p *topKParams, s topKSpec, _ *epilogue) {
	t := newTeam(b, s.crew)
	x := input(b, "x", s.Type)
	values, places := outputValue(b, "values", s.Type), kernel.Output[kernel.I32](b, "places")
	r := newRow(t, b.U32(&p.Rows), b.U32(&p.Cols), s.Held, x)
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
})

// search finds the k greatest elements of a row one after the other: of those
// that come after the last one found, the greatest.
func search(r *row, k kernel.U32, put func(i, j kernel.U32)) {
	const none = 1<<31 - 1
	b, t := r.b, r.t
	last := kernel.NewVar(b, "last", kernel.U(nanKey))
	at := kernel.NewVar(b, "at", kernel.U(none)) // of the last one; none is before all
	t.again()
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
		last.Set(t.most(best.Get()))
		at.Set(t.least(kernel.Select(best.Get().Eq(last.Get()), place.Get(), kernel.U(none))))
		b.If(t.lane.Eq(kernel.U(0)).And(r.cols.Gt(kernel.U(0))), func() { put(i, at.Get()) })
	})
}

// rank counts for each element how many come before it.
func rank(r *row, k kernel.U32, put func(i, j kernel.U32)) {
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

func planTopK(q *request) (*Plan, error) {
	m := topKOf{K: op.TopKOptsOf(&q.Attrs).K}
	m.Rows, m.Cols = q.In[0].Shape.Rows()
	w, name, err := topKWays.choose(q, m)
	if err != nil {
		return nil, err
	}
	params := topKParams{uint32(m.Rows), uint32(m.Cols), uint32(m.K)}
	var p planner
	p.stage(topKs.of(topKSpec{q.In[0].Type, w}, nil), w.groups(m.Rows), params, append(q.inputs(), q.outputs()...)...)
	return p.done(name)
}
