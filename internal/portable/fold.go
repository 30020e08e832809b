//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// Reductions by the folds of package op. The expressions of a fold are the body of one kernel,
// which folds rows, columns or parts of them, and merges the states of the lanes.

// foldOf is an array of shape [Outer Cols Inner] whose middle axis is reduced. With Inner > 1,
// neighbouring lanes take neighbouring columns.
type foldOf struct{ Outer, Cols, Inner int }

func (m foldOf) rows() int { return m.Outer * m.Inner }

// foldSchedule is the schedule of a fold.
type foldSchedule struct {
	groupLayout
	Split   bool // rows are divided into parts
	Columns bool // neighbouring lane groups fold neighbouring rows
}

const (
	// foldLanes is the number of lanes that keep the memory of a large device busy, each of them with
	// foldLoads loads in flight.
	foldLanes = 1 << 17
	foldLoads = 8
	// foldPart is the minimum number of elements of a column in a part, for each lane of a lane group.
	foldPart = 32
)

// foldColumns returns the schedule of a fold of columns by lane groups of the given size.
func foldColumns(lanes, columns int, split bool) foldSchedule {
	return foldSchedule{groupLayout: groupLayout{GroupLanes: lanes, Groups: columns, Across: lanes > 1}, Columns: true, Split: split}
}

var foldSchedules = table[foldOf, foldSchedule]{
	{"fold-columns", func(m foldOf, t *Target) bool {
		return m.Inner > 1 && (m.Cols <= foldLoads || m.rows() >= foldLanes/2 && m.Cols <= 1<<20)
	}, foldColumns(1, 128, false)},
	{"fold-columns8", func(m foldOf, t *Target) bool {
		return m.Inner > 1 && (m.Cols <= 16*foldPart || 8*m.rows() >= foldLanes/2) && m.Cols <= 1<<22
	}, foldColumns(8, 32, false)},
	{"fold-columns8-split", func(m foldOf, t *Target) bool { return m.Inner > 8 }, foldColumns(8, 32, true)},
	{"fold-columns64-split", func(m foldOf, t *Target) bool { return m.Inner > 1 }, foldColumns(64, 4, true)},
	{"fold1", func(m foldOf, t *Target) bool { return m.Inner == 1 && m.Cols <= 4 }, foldSchedule{groupLayout: groupLayout{GroupLanes: 1, Groups: 128}}},
	{"fold8", func(m foldOf, t *Target) bool { return m.Inner == 1 && m.Cols <= 64 }, foldSchedule{groupLayout: groupLayout{GroupLanes: 8, Groups: 16}}},
	{"fold32", func(m foldOf, t *Target) bool { return m.Inner == 1 && m.Cols <= 512 }, foldSchedule{groupLayout: groupLayout{GroupLanes: 32, Groups: 4}}},
	{"fold-split", func(m foldOf, t *Target) bool {
		return m.Inner == 1 && worthSplitting(rowsOf{Rows: m.Outer, Cols: m.Cols})
	}, foldSchedule{groupLayout: groupLayout{GroupLanes: 256, Groups: 1}, Split: true}},
	{"fold", func(m foldOf, t *Target) bool { return m.Inner == 1 && m.Cols <= longestRow }, foldSchedule{groupLayout: groupLayout{GroupLanes: 256, Groups: 1}}},
}

// has reports whether the table has a variant with the given name.
func (vs table[M, S]) has(name string) bool {
	for i := range vs {
		if vs[i].name == name {
			return true
		}
	}
	return false
}

type foldParams struct {
	Rows, Cols uint32
	Inner      uint32 // see foldOf
	Part       uint32 // elements of a row that a lane group folds
	Count      float32
}

type foldSpec struct {
	Op   *op.Operation
	Type op.DType
	foldSchedule
	Pieces bool // the operands are the states of parts
	// RowMajor says that the operand of a fold of columns is nevertheless row by row in memory.
	RowMajor bool
}

var folds = maker[foldParams, foldSpec]{name: "fold", build: func(b *kernel.Builder, p *foldParams, s foldSpec, e *epilogue) {
	f := irhook.Reducer(s.Op, uint8(s.Type))
	t := newLaneGroup(b, s.groupLayout)
	read := s.reader(b, f)
	var put func(number kernel.U32, state []kernel.Dynamic)
	if s.Split {
		put = statesInto(b, f)
	} else {
		types, _ := s.Op.Types(new(op.Attrs), []op.DType{s.Type}) // the types were checked before
		result := e.result(b, types[0])
		put = func(i kernel.U32, state []kernel.Dynamic) {
			result(i, Inline(b, []*ir.Node{f.Finish}, append(state, kernel.Dyn(b.F32(&p.Count))), nil)[0])
		}
	}
	rows, cols, inner, size := b.U32(&p.Rows), b.U32(&p.Cols), b.U32(&p.Inner), b.U32(&p.Part)
	row, part, all := t.number, kernel.U(0), rows
	if s.Split {
		parts := cols.Sub(kernel.U(1)).Div(size).Add(kernel.U(1))
		all = rows.Mul(parts)
		if s.Columns {
			row, part = t.number.Mod(rows), t.number.Div(rows)
		} else {
			row, part = t.number.Div(parts), t.number.Mod(parts)
		}
	}
	is := t.number.Lt(all)
	start, columns := row.Mul(cols), s.Columns && !s.RowMajor
	if columns {
		start = row.Div(inner).Mul(cols.Mul(inner)).Add(row.Mod(inner))
	}
	from := part.Mul(size)
	to := kernel.Select(is, from.Add(size).Min(cols), from)
	state := foldRange(b, f, s, from.Add(t.lane), to, func(i kernel.U32) []kernel.Dynamic {
		at := start.Add(i)
		if columns {
			at = start.Add(i.Mul(inner))
		}
		return read(at, i)
	})
	state = t.fold(f, state)
	b.If(is.And(t.lane.Eq(kernel.U(0))), func() { put(t.number, state) })
}}

// foldRange folds the elements from, from+GroupLanes, ... below to. It folds sumTerms elements into
// one state and then merges this state into the total, because the error grows with the longer of
// these two chains and not with their product. It reads foldLoads elements before it folds the first
// of them, so that all these loads are in flight.
func foldRange(b *kernel.Builder, f *ir.Reducer, s foldSpec, from, to kernel.U32, read func(i kernel.U32) []kernel.Dynamic) []kernel.Dynamic {
	step := f.Step()
	if s.Pieces {
		step = f.Merge
	}
	all, some := newStateVars(b, "all", f), newStateVars(b, "some", f)
	lanes := func(n int) kernel.U32 { return kernel.U(uint32(s.GroupLanes * n)) }
	b.ForStep(from, to, lanes(sumTerms), func(at kernel.U32) {
		some.begin()
		b.ForStep(at, at.Add(lanes(sumTerms)).Min(to), lanes(foldLoads), func(i kernel.U32) {
			var elements [foldLoads][]kernel.Dynamic
			for k := range elements {
				elements[k] = read(i.Add(lanes(k)).Min(to.Sub(kernel.U(1))))
			}
			for k, x := range elements {
				add := func() { some.set(Inline(b, step, append(some.get(), x...), nil)) }
				if k == 0 {
					add()
				} else {
					b.If(i.Add(lanes(k)).Lt(to), add)
				}
			}
		})
		all.set(Inline(b, f.Merge, append(all.get(), some.get()...), nil))
	})
	return all.get()
}

// reader declares the operands. It returns a function that reads an element and its index, or one
// that reads a state if the operands are states.
func (s *foldSpec) reader(b *kernel.Builder, f *ir.Reducer) func(at, i kernel.U32) []kernel.Dynamic {
	if !s.Pieces {
		x := inputValue(b, "x", s.Type)
		return func(at, i kernel.U32) []kernel.Dynamic {
			return []kernel.Dynamic{x.at(at), kernel.Dyn(i.I32())}
		}
	}
	var xs []source
	for i, c := range f.Identity {
		xs = append(xs, inputValue(b, stateName(i), elementOf(c.Type)))
	}
	return func(at, _ kernel.U32) (state []kernel.Dynamic) {
		for _, x := range xs {
			state = append(state, x.at(at))
		}
		return state
	}
}

// statesInto declares one result for each number of a state.
func statesInto(b *kernel.Builder, f *ir.Reducer) func(i kernel.U32, state []kernel.Dynamic) {
	var ys []sink
	for i, c := range f.Identity {
		ys = append(ys, outputValue(b, stateName(i), elementOf(c.Type)))
	}
	return func(i kernel.U32, state []kernel.Dynamic) {
		for k, y := range ys {
			y.set(i, state[k])
		}
	}
}

func stateName(i int) string { return "state" + string(rune('0'+i)) }

// elementOf returns the element type of arrays that hold numbers of type t.
func elementOf(t ir.Type) op.DType {
	switch t {
	case ir.I32:
		return op.I32
	case ir.U32:
		return op.U32
	}
	return op.F32
}

// stateVars holds the bits of the numbers of a state in variables.
type stateVars struct {
	b    *kernel.Builder
	f    *ir.Reducer
	vars []kernel.Var[kernel.U32]
}

func newStateVars(b *kernel.Builder, name string, f *ir.Reducer) *stateVars {
	v := &stateVars{b: b, f: f}
	for i, x := range v.identity() {
		v.vars = append(v.vars, kernel.NewVar(b, name+string(rune('0'+i)), x))
	}
	return v
}

func (v *stateVars) identity() (bits []kernel.U32) {
	for _, c := range v.f.Identity {
		bits = append(bits, bitsOf(v.b, constant(c), c.Type))
	}
	return bits
}

func (v *stateVars) begin() {
	for i, x := range v.identity() {
		v.vars[i].Set(x)
	}
}

func (v *stateVars) get() (state []kernel.Dynamic) {
	for i, c := range v.f.Identity {
		state = append(state, valueOf(v.vars[i].Get(), c.Type))
	}
	return state
}

func (v *stateVars) set(state []kernel.Dynamic) {
	for i, x := range state {
		v.vars[i].Set(bitsOf(v.b, x, v.f.Identity[i].Type))
	}
}

// constant returns the value of the constant c.
func constant(c *ir.Node) kernel.Dynamic {
	switch c.Type {
	case ir.I32:
		return kernel.Dyn(kernel.I(int32(c.Value)))
	case ir.U32:
		return kernel.Dyn(kernel.U(uint32(c.Value)))
	}
	return kernel.Dyn(kernel.F(float32(c.Value)))
}

// bitsOf returns the bits of a number of type t.
func bitsOf(b *kernel.Builder, d kernel.Dynamic, t ir.Type) kernel.U32 {
	switch t {
	case ir.I32:
		return kernel.As[kernel.I32](b, d).U32()
	case ir.U32:
		return kernel.As[kernel.U32](b, d)
	}
	return kernel.As[kernel.F32](b, d).AsU32()
}

// valueOf returns the number of type t with the bits u.
func valueOf(u kernel.U32, t ir.Type) kernel.Dynamic {
	switch t {
	case ir.I32:
		return kernel.Dyn(u.I32())
	case ir.U32:
		return kernel.Dyn(u)
	}
	return kernel.Dyn(u.AsF32())
}

// fold merges the states of all lanes of a lane group and returns the result in the first lane. A
// kernel may call it once.
func (t *laneGroup) fold(f *ir.Reducer, state []kernel.Dynamic) []kernel.Dynamic {
	if t.GroupLanes == 1 {
		return state
	}
	b, me := t.b, t.b.LocalX()
	var shared []kernel.Array[kernel.U32]
	for i, x := range state {
		s := kernel.Shared[kernel.U32](b, "team_"+stateName(i), t.lanes())
		s.Set(me, bitsOf(b, x, f.Identity[i].Type))
		shared = append(shared, s)
	}
	at := func(i kernel.U32) (state []kernel.Dynamic) {
		for k, c := range f.Identity {
			state = append(state, valueOf(shared[k].At(i), c.Type))
		}
		return state
	}
	for d := t.GroupLanes / 2; d > 0; d /= 2 {
		b.Barrier()
		b.If(t.lane.Lt(kernel.U(uint32(d))), func() {
			for k, x := range Inline(b, f.Merge, append(at(me), at(me.Add(kernel.U(uint32(d*t.apart()))))...), nil) {
				shared[k].Set(me, bitsOf(b, x, f.Identity[k].Type))
			}
		})
	}
	return at(me)
}

// planFold plans a reduction by its fold.
func planFold(q *request) (*Plan, error) {
	m := foldOf{Outer: 1, Cols: size(q.In[0].Shape), Inner: 1}
	if q.Attrs.I[0] == op.AlongRows {
		m.Outer, m.Cols = q.In[0].Shape.Rows()
		if n := q.Inner; n > 1 {
			m.Outer, m.Inner = m.Outer/n, n
		}
	}
	f := irhook.Reducer(q.Op, uint8(q.In[0].Type))
	if f == nil {
		return nil, unsupported("the operation cannot fold elements of type %v", q.In[0].Type)
	}
	if m.Cols == 0 {
		return planFill(q, float32(f.Empty()))
	}
	w, name, err := foldSchedules.choose(q, m)
	if err != nil {
		return nil, err
	}
	w.groupLayout = w.with(&q.Target)
	var p planner
	s := foldSpec{Op: q.Op, Type: q.In[0].Type, foldSchedule: w}
	params := foldParams{Rows: uint32(m.rows()), Cols: uint32(m.Cols), Inner: uint32(m.Inner), Part: uint32(m.Cols), Count: float32(m.Cols)}
	if q.Op == op.Var {
		params.Count = float32(max(m.Cols-op.VarOptsOf(&q.Attrs).DDOF, 0))
	}
	operands := q.inputs()
	n, length := 1, m.Cols
	switch {
	case w.Split && w.Columns:
		n, length = w.columnParts(m)
	case w.Split:
		n, length = parts(m.Cols, reducedParts)
	}
	if s.Split = n > 1; s.Split {
		params.Part = uint32(length)
		pieces := make([]Ref, f.States())
		for i := range pieces {
			pieces[i] = p.scratch(m.rows() * n)
		}
		p.stage(folds.of(s, nil), w.groups(m.rows()*n), params, append(operands, pieces...)...)
		s.Split, s.Pieces, operands = false, true, pieces
		params.Cols, params.Part = uint32(n), uint32(n)
		if w.Columns {
			params.Inner = params.Rows // consecutive pieces are one piece of each row
		}
	}
	p.stage(folds.of(s, q.epilogue), w.groups(m.rows()), params, append(operands, q.outputs()...)...)
	return p.done(name)
}

// columnParts returns the number of parts of each column, and their length. The number depends only
// on the array, so that the results do not depend on the device.
func (w *foldSchedule) columnParts(m foldOf) (n, length int) {
	// A workgroup folds at least all of its columns, even if there are fewer.
	n = foldLanes / (max(m.rows(), w.Groups) * w.GroupLanes)
	n = max(1, min(n, m.Cols/(w.GroupLanes*foldPart)))
	length = (m.Cols-1)/n + 1
	return (m.Cols-1)/length + 1, length
}
