//go:build !js || !nowebgpu

package portable

import (
	"math/bits"

	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// Every run gives the same bits. There are four ways. Sums and extremes of integers use atomic
// operations on the result: see scatteratomic.go. In the other ways no two lanes write the same element. A
// set finds the last id that names an element by an atomic maximum of the numbers of ids. Folds of
// single elements move them to buckets of neighbouring rows, which workgroups fold in workgroup
// memory: see scatterfold.go. All other scatters sort the rows that ids name, in the order of ids
// for equal rows. Each element of the result then finds the first id of its row by a binary search
// and folds the elements of its row one after the other.

const scatterLanes = 256

type scatterParams struct {
	N      uint32 // elements of the result
	Inner  uint32 // elements of a row
	Extent uint32 // rows for each outer index
	IDs    uint32
}

type scatterSpec struct {
	Type    op.DType
	Reduce  op.ScatterReduce
	InPlace bool
}

// scatterKeys computes the number of the row that each id names. Ids that name no row come last.
var scatterKeys = maker[scatterParams, struct{}]{name: "scatter_keys", build: func(b *kernel.Builder, p *scatterParams, _ struct{}, _ *epilogue) {
	b.LocalSize(scatterLanes, 1, 1)
	ids, keys := kernel.Input[kernel.I32](b, "ids"), kernel.Output[kernel.U32](b, "rows")
	i := b.Index()
	b.If(i.Lt(b.U32(&p.IDs)), func() {
		row, is := rowOf(ids.At(i), b.U32(&p.Extent))
		keys.Set(i, kernel.Select(is, row, kernel.U(1<<32-1)))
	})
}}

// scatterFew is the maximum number of ids for which a set in place searches all other ids for equal
// ones.
const scatterFew = 4096

// scatterMany is the minimum number of ids for which elements are folded in workgroup memory and
// not sorted.
const scatterMany = 1024

// scatterSets writes elements of v in place, one element in each lane. It does not read or write
// rows that no id names, so the time does not depend on the size of x. Of equal ids, the last one
// writes.
var scatterSets = maker[scatterParams, scatterSpec]{name: "scatter_set", build: func(b *kernel.Builder, p *scatterParams, s scatterSpec, _ *epilogue) {
	b.LocalSize(scatterLanes, 1, 1)
	ids, v := kernel.Input[kernel.I32](b, "ids"), inputBits(b, "v", s.Type)
	_, put := s.memory(b, nil)
	i := b.Index()
	b.If(i.Lt(b.U32(&p.N)), func() {
		inner, extent, n := b.U32(&p.Inner), b.U32(&p.Extent), b.U32(&p.IDs)
		line := i.Div(inner)
		id := line.Mod(n)
		row, is := rowOf(ids.At(id), extent)
		b.If(is, func() {
			later := kernel.NewVar(b, "later", id.Add(kernel.U(1)))
			b.Loop(func() {
				b.If(later.Get().Ge(n), func() { b.Break() })
				other, there := rowOf(ids.At(later.Get()), extent)
				b.If(there.And(other.Eq(row)), func() { b.Break() })
				later.Set(later.Get().Add(kernel.U(1)))
			})
			b.If(later.Get().Ge(n), func() {
				put(line.Div(n).Mul(extent).Add(row).Mul(inner).Add(i.Mod(inner)), v(i))
			})
		})
	})
}}

// scatterLasts finds, for each row, the number of the last id that names it. Numbers are counted
// from 1, and 0 means that no id names the row.
var scatterLasts = maker[scatterParams, struct{}]{name: "scatter_lasts", build: func(b *kernel.Builder, p *scatterParams, _ struct{}, _ *epilogue) {
	b.LocalSize(scatterLanes, 1, 1)
	ids, last := kernel.Input[kernel.I32](b, "ids"), kernel.Atomic[kernel.U32](b, "last")
	i := b.Index()
	b.If(i.Lt(b.U32(&p.IDs)), func() {
		row, is := rowOf(ids.At(i), b.U32(&p.Extent))
		b.If(is, func() { last.Max(row, i.Add(kernel.U(1))) })
	})
}}

// scatterTakes computes the result of a set from the last ids. A lane computes one element.
var scatterTakes = maker[scatterParams, scatterSpec]{name: "scatter_take", build: func(b *kernel.Builder, p *scatterParams, s scatterSpec, e *epilogue) {
	b.LocalSize(scatterLanes, 1, 1)
	last, v := kernel.Input[kernel.U32](b, "last"), inputBits(b, "v", s.Type)
	get, put := s.memory(b, e)
	i := b.Index()
	b.If(i.Lt(b.U32(&p.N)), func() {
		inner, extent, n := b.U32(&p.Inner), b.U32(&p.Extent), b.U32(&p.IDs)
		line := i.Div(inner)
		from := last.At(line.Mod(extent))
		take := func() kernel.U32 {
			return v(line.Div(extent).Mul(n).Add(from.Sub(kernel.U(1))).Mul(inner).Add(i.Mod(inner)))
		}
		if s.InPlace {
			b.If(from.Ne(kernel.U(0)), func() { put(i, take()) })
			return
		}
		x := kernel.NewVar(b, "x_now", kernel.U(0))
		b.If(from.Ne(kernel.U(0)), func() { x.Set(take()) }).Else(func() { x.Set(get(i)) })
		put(i, x.Get())
	})
}}

// combine folds the element v into the element x. Both are given by their bits.
func (s scatterSpec) combine(x, v kernel.U32) kernel.U32 {
	if s.Reduce == op.ScatterSet {
		return v
	}
	switch s.Type {
	case op.U32:
		return combined(s.Reduce, x, v)
	case op.I32:
		return combined(s.Reduce, x.I32(), v.I32()).U32()
	}
	return combined(s.Reduce, x.AsF32(), v.AsF32()).AsU32()
}

// combinable is a type whose numbers can be added, multiplied and compared.
type combinable[T any] interface {
	Add(T) T
	Mul(T) T
	Min(T) T
	Max(T) T
}

func combined[T combinable[T]](r op.ScatterReduce, x, v T) T {
	switch r {
	case op.ScatterAdd:
		return x.Add(v)
	case op.ScatterMul:
		return x.Mul(v)
	case op.ScatterMin:
		return x.Min(v)
	}
	return x.Max(v)
}

// memory declares x and the result, which are one array if the scatter is in place. It returns
// functions that read and write the bits of an element.
func (s scatterSpec) memory(b *kernel.Builder, e *epilogue) (get func(i kernel.U32) kernel.U32, put func(i, v kernel.U32)) {
	switch {
	case !s.InPlace:
		return inputBits(b, "x", s.Type), e.bits(b, s.Type)
	case s.Type == op.F16:
		y := kernel.InOut[kernel.F16](b, "out")
		return func(i kernel.U32) kernel.U32 { return y.At(i).F32().AsU32() }, func(i, v kernel.U32) { y.Set(i, v.AsF32().F16()) }
	}
	y := kernel.InOut[kernel.U32](b, "out")
	return y.At, y.Set
}

// scatters computes the result from sorted rows. A lane computes one element.
var scatters = maker[scatterParams, scatterSpec]{name: "scatter", build: func(b *kernel.Builder, p *scatterParams, s scatterSpec, e *epilogue) {
	b.LocalSize(scatterLanes, 1, 1)
	keys, places := kernel.Input[kernel.U32](b, "rows"), kernel.Input[kernel.I32](b, "places")
	v := inputBits(b, "v", s.Type)
	get, put := s.memory(b, e)
	i := b.Index()
	b.If(i.Lt(b.U32(&p.N)), func() {
		inner, extent, n := b.U32(&p.Inner), b.U32(&p.Extent), b.U32(&p.IDs)
		line := i.Div(inner)
		row, first := line.Mod(extent), line.Div(extent).Mul(n)
		low, high := kernel.NewVar(b, "low", kernel.U(0)), kernel.NewVar(b, "high", n)
		b.While(func() kernel.Bool { return low.Get().Lt(high.Get()) }, func() {
			middle := low.Get().Add(high.Get()).Shr(kernel.U(1))
			b.If(keys.At(middle).Lt(row), func() { low.Set(middle.Add(kernel.U(1))) }).Else(func() { high.Set(middle) })
		})
		x := kernel.NewVar(b, "x_now", get(i))
		b.Loop(func() {
			at := low.Get()
			b.If(at.Ge(n), func() { b.Break() })
			b.If(keys.At(at).Ne(row), func() { b.Break() })
			from := first.Add(places.At(at).U32()).Mul(inner).Add(i.Mod(inner))
			x.Set(s.combine(x.Get(), v(from)))
			low.Set(at.Add(kernel.U(1)))
		})
		put(i, x.Get())
	})
}}

// scatterOf has the properties that decide the schedule of a scatter.
type scatterOf struct {
	op.Indexed
	Reduce  op.ScatterReduce
	InPlace bool
	Integer bool // the elements are integers
	Fused   bool // the result has an epilogue
}

// single reports whether the operation folds single elements.
func (m scatterOf) single() bool {
	return m.Outer == 1 && m.Inner == 1 && m.Reduce != op.ScatterSet && m.IDs > 0
}

type scatterSchedule struct {
	way   scatterWay
	sorts sortSchedule
}

type scatterWay uint8

const (
	scatterSorted scatterWay = iota
	scatterNamed
	scatterLast
	scatterParts
	scatterBuckets
	scatterAtomic
	scatterAtomicShared
)

var scatterSchedules = lazyTable[scatterOf, scatterSchedule]{make: scatterTable}

// scatterTable lists the schedules that do not sort, followed by one schedule for each way to sort.
func scatterTable() table[scatterOf, scatterSchedule] {
	vs := table[scatterOf, scatterSchedule]{
		{"named", func(m scatterOf, _ *Target) bool {
			return m.Reduce == op.ScatterSet && m.InPlace && m.IDs <= scatterFew
		}, scatterSchedule{way: scatterNamed}},
		{"last", func(m scatterOf, _ *Target) bool { return m.Reduce == op.ScatterSet }, scatterSchedule{way: scatterLast}},
		{"atomic-shared", func(m scatterOf, t *Target) bool { return m.words(t) > 0 && m.IDs > 4*atomicChunk }, scatterSchedule{way: scatterAtomicShared}},
		{"atomic", func(m scatterOf, _ *Target) bool { return m.atomic() }, scatterSchedule{way: scatterAtomic}},
		{"parts", func(m scatterOf, t *Target) bool { return m.IDs > scatterMany }, scatterSchedule{way: scatterParts}},
		{"buckets", func(m scatterOf, t *Target) bool { return m.IDs > scatterMany }, scatterSchedule{way: scatterBuckets}},
	}
	for _, v := range sortSchedules {
		vs = append(vs, variant[scatterOf, scatterSchedule]{v.name, func(m scatterOf, t *Target) bool { return v.fits(sortOf{m.IDs}, t) }, scatterSchedule{sorts: v.spec}})
	}
	return vs
}

func (w scatterSchedule) can(m scatterOf, t *Target) bool {
	switch w.way {
	case scatterNamed:
		return m.Reduce == op.ScatterSet && m.InPlace
	case scatterLast:
		return m.Reduce == op.ScatterSet
	case scatterAtomic:
		return m.atomic()
	case scatterAtomicShared:
		return m.words(t) > 0
	case scatterParts:
		return t.Votes && t.Shared >= foldShared && m.single() && m.Extent <= scatterPartRows
	case scatterBuckets:
		return t.Votes && t.Shared >= foldShared && m.single() && m.Extent < 1<<(2*radixMost)
	}
	return w.sorts.can(sortOf{m.IDs}, t)
}

func planScatter(q *request) (*Plan, error) {
	s, err := op.IndexedOf(&q.Attrs, q.In[0].Shape, q.In[1].Shape)
	if err != nil {
		return nil, err
	}
	m := scatterOf{s, op.ScatterReduceOf(&q.Attrs), q.InPlace, q.In[0].Type == op.I32 || q.In[0].Type == op.U32, q.epilogue != nil}
	w, name, err := scatterSchedules.get().prefer(q, m, func(w *scatterSchedule) bool { return w.can(m, &q.Target) })
	if err != nil {
		return nil, err
	}
	var p planner
	in, n := q.inputs(), s.Outer*s.Extent*s.Inner
	if s.IDs == 0 {
		if !q.InPlace {
			p.copyOperand(q, s)
		}
		return p.done(name)
	}
	params := scatterParams{uint32(n), uint32(s.Inner), uint32(s.Extent), uint32(s.IDs)}
	spec := scatterSpec{q.In[0].Type, m.Reduce, q.InPlace}
	// into returns the bindings of a kernel that reads the arrays bind and x, and writes the
	// result.
	into := func(bind ...Ref) []Ref {
		if !q.InPlace {
			bind = append(bind, in[0])
		}
		return append(bind, q.outputs()...)
	}
	switch w.way {
	case scatterNamed:
		params.N = uint32(s.Outer * s.IDs * s.Inner)
		p.stage(scatterSets.of(spec, nil), kernel.GridFor(int(params.N), scatterLanes), params, append([]Ref{in[1], in[2]}, q.outputs()...)...)
	case scatterLast:
		last := p.scratch(s.Extent)
		p.stage(fill.of(op.U32, nil), kernel.GridFor(s.Extent, fillLanes), fillParams{N: uint32(s.Extent)}, last)
		p.stage(scatterLasts.of(struct{}{}, nil), kernel.GridFor(s.IDs, scatterLanes), params, in[1], last)
		p.stage(scatterTakes.of(spec, q.epilogue), kernel.GridFor(n, scatterLanes), params, into(last, in[2])...)
	case scatterParts:
		p.scatterByParts(spec, q, s, in, into)
	case scatterBuckets:
		p.scatterByBuckets(spec, q, s, in, into)
	case scatterAtomic:
		p.scatterByAtomics(spec, q, s, 0)
	case scatterAtomicShared:
		p.scatterByAtomics(spec, q, s, m.words(&q.Target))
	default:
		keys, places := p.sortedRows(w.sorts, in[1], s, params)
		p.stage(scatters.of(spec, q.epilogue), kernel.GridFor(n, scatterLanes), params, into(keys, places, in[2])...)
	}
	return p.done(name)
}

// sortedRows adds the launches that sort the rows that ids name. It returns the sorted rows and the
// numbers of their ids.
func (p *planner) sortedRows(w sortSchedule, ids Ref, s op.Indexed, params scatterParams) (keys, places Ref) {
	if w.Radix {
		return p.radixSorted(&radixSort{rows: 1, cols: s.IDs, bits: bits.Len(uint(s.Extent)), extent: s.Extent,
			radixSpec: radixSpec{Type: op.U32, Keys: keysOfIds, Items: radixItems}}, ids, nil)
	}
	rows := p.scratch(s.IDs)
	p.stage(scatterKeys.of(struct{}{}, nil), kernel.GridFor(s.IDs, scatterLanes), params, ids, rows)
	return p.sorted(rows, s.IDs, w)
}

// sorted adds the launches that sort n numbers of type u32. It returns the sorted numbers and their
// original positions.
func (p *planner) sorted(x Ref, n int, w sortSchedule) (keys, places Ref) {
	runs := (n-1)/w.Run + 1
	s := sortSpec{op.U32, false, runs > 1, w}
	var halves [2][2]Ref
	for i := range halves[:min(runs, 2)] {
		halves[i] = [2]Ref{p.scratch(n), p.scratch(n)}
	}
	p.stage(sortRuns.of(s, nil), kernel.GridOf(runs), sortParams{uint32(n), uint32(runs), uint32(runs)}, x, halves[0][0], halves[0][1])
	at := 0
	for run := w.Run; run < n; at, run = 1-at, 2*run {
		p.stage(sortMerge.of(mergeSpec{Type: op.U32}, nil), kernel.GridFor(n, mergeLanes), mergeParams{uint32(n), uint32(n), uint32(run)},
			halves[at][0], halves[at][1], halves[1-at][0], halves[1-at][1])
	}
	return halves[at][0], halves[at][1]
}
