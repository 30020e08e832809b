//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// A scan uses a fold of package op. A lane group scans a row or a part of a row. For a part, it
// starts from the folded state of the earlier parts.
var scanSchedules = table[foldOf, foldSchedule]{
	{"scan-columns", func(m foldOf, t *Target) bool {
		return m.Inner > 1 && (m.rows() >= foldLanes/2 || m.Cols <= 2*foldPart)
	}, foldColumns(1, columnLanes, false)},
	{"scan-columns-split", func(m foldOf, t *Target) bool { return m.Inner > 1 }, foldColumns(1, columnLanes, true)},
	{"scan8", func(m foldOf, t *Target) bool { return m.Inner == 1 && m.Cols <= 16 }, foldSchedule{groupLayout: groupLayout{GroupLanes: 8, Groups: 16}}},
	{"scan32", func(m foldOf, t *Target) bool { return m.Inner == 1 && m.Cols <= 128 }, foldSchedule{groupLayout: groupLayout{GroupLanes: 32, Groups: 4}}},
	{"scan-split", func(m foldOf, t *Target) bool {
		return m.Inner == 1 && worthSplitting(rowsOf{Rows: m.Outer, Cols: m.Cols})
	}, foldSchedule{groupLayout: groupLayout{GroupLanes: 256, Groups: 1}, Split: true}},
	{"scan", func(m foldOf, t *Target) bool { return m.Inner == 1 && m.Cols <= longestRow }, foldSchedule{groupLayout: groupLayout{GroupLanes: 256, Groups: 1}}},
}

var scans = maker[foldParams, foldSpec]{name: "scan", build: func(b *kernel.Builder, p *foldParams, s foldSpec, e *epilogue) {
	f := irhook.Reducer(s.Op, uint8(s.Type))
	t := newLaneGroup(b, s.groupLayout)
	x := inputValue(b, "x", s.Type)
	var before func(at, i kernel.U32) []kernel.Dynamic
	if s.Split {
		pieces := s
		pieces.Pieces = true
		before = pieces.reader(b, f)
	}
	types, _ := s.Op.Types(new(op.Attrs), []op.DType{s.Type}) // the types were checked before
	put := e.result(b, types[0])
	rows, cols, size := b.U32(&p.Rows), b.U32(&p.Cols), b.U32(&p.Part)
	row, part := t.number, kernel.U(0)
	if s.Split {
		parts := cols.Sub(kernel.U(1)).Div(size).Add(kernel.U(1))
		row, part = t.number.Div(parts), t.number.Mod(parts)
	}
	is := row.Lt(rows)
	first := kernel.Select(is, row, kernel.U(0)).Mul(cols)
	from := kernel.U(0)
	if s.Split {
		from = part.Mul(size)
	}
	to := kernel.Select(is, from.Add(size).Min(cols), from)
	shared := t.shareStates(f)
	carry := newStateVars(b, "carry", f)
	if s.Split {
		of := s
		of.Pieces = true
		done := foldRange(b, f, of, t.number.Sub(part).Add(t.lane), kernel.Select(is, t.number, kernel.U(0)), func(i kernel.U32) []kernel.Dynamic { return before(i, i) })
		_, whole := t.scanStates(f, shared, done)
		carry.set(whole)
		b.Barrier()
	}
	b.ForStep(kernel.U(0), size, kernel.U(uint32(s.GroupLanes)), func(at kernel.U32) {
		i := from.Add(at).Add(t.lane)
		own := newStateVars(b, "own", f)
		b.If(i.Lt(to), func() {
			own.set(Inline(b, f.Lift, []kernel.Dynamic{x.at(first.Add(i)), kernel.Dyn(i.I32())}, nil))
		})
		upTo, whole := t.scanStates(f, shared, own.get())
		all := Inline(b, f.Merge, append(carry.get(), upTo...), nil)
		b.If(i.Lt(to), func() {
			count := kernel.Dyn(i.Add(kernel.U(1)).F32())
			put(first.Add(i), Inline(b, []*ir.Node{f.Finish}, append(all, count), nil)[0])
		})
		carry.set(Inline(b, f.Merge, append(carry.get(), whole...), nil))
		b.Barrier() // wait until all lanes have read the shared states
	})
}}

// columnScanSpec specialises the kernel that scans columns.
type columnScanSpec struct {
	Op       *op.Operation
	Type     op.DType
	Split    bool // columns are divided into parts, and the folded states of the parts are operands
	From, To bool // the operand, and the result, is [Outer Cols Inner] in memory; otherwise it is row by row
}

// columnScans scans the middle axis of an array [Outer Cols Inner]. Each lane scans a column or a part
// of one, and neighbouring lanes scan neighbouring columns. A lane reads foldLoads elements before it
// scans the first of them, so that all these loads are in flight.
var columnScans = maker[foldParams, columnScanSpec]{name: "scan_columns", build: func(b *kernel.Builder, p *foldParams, s columnScanSpec, e *epilogue) {
	f := irhook.Reducer(s.Op, uint8(s.Type))
	schedule := foldColumns(1, columnLanes, s.Split)
	t := newLaneGroup(b, schedule.groupLayout)
	x := inputValue(b, "x", s.Type)
	pieces := foldSpec{Op: s.Op, Type: s.Type, foldSchedule: schedule, Pieces: true}
	var before func(at, i kernel.U32) []kernel.Dynamic
	if s.Split {
		before = pieces.reader(b, f)
	}
	types, _ := s.Op.Types(new(op.Attrs), []op.DType{s.Type}) // the types were checked before
	put := e.result(b, types[0])
	rows, cols, inner, size := b.U32(&p.Rows), b.U32(&p.Cols), b.U32(&p.Inner), b.U32(&p.Part)
	row, part := t.number.Mod(rows), t.number.Div(rows)
	from := part.Mul(size)
	to := from.Add(size).Min(cols)
	part = kernel.Select(from.Lt(cols), part, kernel.U(0)) // a lane without elements reads no states
	place := func(columns bool) func(i kernel.U32) kernel.U32 {
		if !columns {
			return func(i kernel.U32) kernel.U32 { return row.Mul(cols).Add(i) }
		}
		start := row.Div(inner).Mul(cols.Mul(inner)).Add(row.Mod(inner))
		return func(i kernel.U32) kernel.U32 { return start.Add(i.Mul(inner)) }
	}
	source, target := place(s.From), place(s.To)
	all, some := newStateVars(b, "all", f), newStateVars(b, "some", f)
	if s.Split {
		all.set(foldRange(b, f, pieces, kernel.U(0), part, func(i kernel.U32) []kernel.Dynamic {
			at := i.Mul(rows).Add(row)
			return before(at, at)
		}))
	}
	b.ForStep(from, to, kernel.U(sumTerms), func(at kernel.U32) {
		some.begin()
		b.ForStep(at, at.Add(kernel.U(sumTerms)).Min(to), kernel.U(foldLoads), func(first kernel.U32) {
			var xs [foldLoads]kernel.Dynamic
			for k := range xs {
				xs[k] = x.at(source(first.Add(kernel.U(uint32(k))).Min(to.Sub(kernel.U(1)))))
			}
			for k := range xs {
				i := first.Add(kernel.U(uint32(k)))
				b.If(i.Lt(to), func() {
					some.set(Inline(b, f.Step(), append(some.get(), xs[k], kernel.Dyn(i.I32())), nil))
					upTo := Inline(b, f.Merge, append(all.get(), some.get()...), nil)
					count := kernel.Dyn(i.Add(kernel.U(1)).F32())
					put(target(i), Inline(b, []*ir.Node{f.Finish}, append(upTo, count), nil)[0])
				})
			}
		})
		all.set(Inline(b, f.Merge, append(all.get(), some.get()...), nil))
	})
}}

// columnLanes is the number of lanes of a workgroup that scans columns.
const columnLanes = 128

// minScanInner is the minimum number of adjacent columns: 64 bytes of float32, two sectors of memory.
const minScanInner = 16

// maxScanParts limits the parts of a column, because each lane folds the states of all earlier parts.
const maxScanParts = 64

// scansColumns reports whether the kernels that scan columns can read, or write, an array of shape s
// in layout l, and whether they are as fast as a copy to rows followed by a scan of rows: neighbouring
// lanes must find neighbouring columns.
func scansColumns(o *op.Operation, s op.Shape, l *op.Layout) bool {
	if !o.Scans() || len(s) == 0 {
		return false
	}
	_, inner, ok := l.Columns(s.Rows())
	return ok && inner >= minScanInner
}

// planColumnScan plans a scan whose operand, or result, has the order of [Outer Cols Inner] in memory.
func planColumnScan(q *request) (*Plan, error) {
	m, err := columnsOf(q)
	if err != nil {
		return nil, err
	}
	s := columnScanSpec{Op: q.Op, Type: q.In[0].Type, From: q.In[0].Layout != nil, To: q.Out[0].Layout != nil}
	w, name, err := scanSchedules.choose(q, m)
	if err != nil {
		return nil, err
	}
	var p planner
	params := foldParams{Rows: uint32(m.rows()), Cols: uint32(m.Cols), Inner: uint32(m.Inner), Part: uint32(m.Cols)}
	operands, lanes := q.inputs(), m.rows()
	if w.Split {
		n := max(1, min(foldLanes/m.rows(), m.Cols/foldPart, maxScanParts))
		length := (m.Cols-1)/n + 1
		n = (m.Cols-1)/length + 1
		params.Part, s.Split = uint32(length), n > 1
		if s.Split {
			lanes *= n
			for range irhook.Reducer(q.Op, uint8(s.Type)).States() {
				operands = append(operands, p.scratch(lanes))
			}
			p.stage(folds.of(foldSpec{Op: q.Op, Type: s.Type, foldSchedule: w, RowMajor: !s.From}, nil), w.groups(lanes), params, operands...)
		}
	}
	p.stage(columnScans.of(s, q.epilogue), w.groups(lanes), params, append(operands, q.outputs()...)...)
	return p.done(name)
}

// columnsOf returns the array [Outer Cols Inner] whose middle axis a request works on.
func columnsOf(q *request) (m foldOf, err error) {
	rows, cols := q.In[0].Shape.Rows()
	for _, a := range []Array{q.In[0], q.Out[0]} {
		if a.Layout == nil {
			continue
		}
		outer, inner, ok := a.Layout.Columns(rows, cols)
		if !ok || m.Inner > 0 && m.Inner != inner {
			return m, unsupported("the layouts %v and %v do not describe the same columns", q.In[0].Layout, q.Out[0].Layout)
		}
		m = foldOf{Outer: outer, Cols: cols, Inner: inner}
	}
	return m, nil
}

// shareStates declares workgroup memory for one state of each lane.
func (t *laneGroup) shareStates(f *ir.Reducer) (shared []kernel.Array[kernel.U32]) {
	for i := range f.Identity {
		shared = append(shared, kernel.Shared[kernel.U32](t.b, "team_"+stateName(i), t.lanes()))
	}
	return shared
}

// scanStates merges the state of each lane of a lane group with the states of the lanes before it.
// It returns the merged state and the state of all lanes. There must be a barrier between two
// calls.
func (t *laneGroup) scanStates(f *ir.Reducer, shared []kernel.Array[kernel.U32], state []kernel.Dynamic) (upTo, whole []kernel.Dynamic) {
	b, me := t.b, t.b.LocalX()
	own := newStateVars(b, "upto", f)
	own.set(state)
	share := func() {
		for k, v := range own.vars {
			shared[k].Set(me, v.Get())
		}
		b.Barrier()
	}
	at := func(i kernel.U32) (state []kernel.Dynamic) {
		for k, c := range f.Identity {
			state = append(state, valueOf(shared[k].At(i), c.Type))
		}
		return state
	}
	share()
	for d := 1; d < t.GroupLanes; d *= 2 {
		b.If(t.lane.Ge(kernel.U(uint32(d))), func() {
			own.set(Inline(b, f.Merge, append(at(me.Sub(kernel.U(uint32(d)))), own.get()...), nil))
		})
		b.Barrier()
		share()
	}
	return own.get(), at(me.Sub(t.lane).Add(kernel.U(uint32(t.GroupLanes - 1))))
}

// planScan plans a scan by its fold.
func planScan(q *request) (*Plan, error) {
	if irhook.Reducer(q.Op, uint8(q.In[0].Type)) == nil {
		return nil, unsupported("the operation cannot scan elements of type %v", q.In[0].Type)
	}
	if q.In[0].Layout != nil || q.Out[0].Layout != nil {
		return planColumnScan(q)
	}
	m := foldOf{Inner: 1}
	m.Outer, m.Cols = q.In[0].Shape.Rows()
	f := irhook.Reducer(q.Op, uint8(q.In[0].Type))
	w, name, err := scanSchedules.choose(q, m)
	if err != nil {
		return nil, err
	}
	w.groupLayout = w.with(&q.Target)
	var p planner
	s := foldSpec{Op: q.Op, Type: q.In[0].Type, foldSchedule: w}
	params := foldParams{Rows: uint32(m.Outer), Cols: uint32(m.Cols), Inner: 1, Part: uint32(m.Cols), Count: 1}
	operands, groups := q.inputs(), m.Outer
	if w.Split {
		n, length := parts(m.Cols, maxParts)
		params.Part = uint32(length)
		groups *= n
		for range f.States() {
			operands = append(operands, p.scratch(groups))
		}
		p.stage(folds.of(s, nil), w.groups(groups), params, operands...)
	}
	p.stage(scans.of(s, q.epilogue), w.groups(groups), params, append(operands, q.outputs()...)...)
	return p.done(name)
}
