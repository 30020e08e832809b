//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// softmaxColumns computes the softmax, or its logarithm, along the middle axis of an array [Outer Cols Inner]. A lane group
// computes a column, and neighbouring lane groups neighbouring columns. Lanes keep their elements in registers, so that the
// kernel reads and writes each element once.
var softmaxColumns = maker[foldParams, softmaxColumnSpec]{name: "softmax_columns", build: func(b *kernel.Builder, p *foldParams, s softmaxColumnSpec, e *epilogue) {
	t := newLaneGroup(b, s.groupLayout)
	x, put := inputValue(b, "x", s.Type), e.result(b, s.Type)
	rows, cols, inner := b.U32(&p.Rows), b.U32(&p.Cols), b.U32(&p.Inner)
	is := t.number.Lt(rows)
	row := kernel.Select(is, t.number, kernel.U(0))
	place := func(columns bool, i kernel.U32) kernel.U32 {
		if !columns {
			return row.Mul(cols).Add(i)
		}
		return row.Div(inner).Mul(cols).Add(i).Mul(inner).Add(row.Mod(inner))
	}
	at := func(k int) kernel.U32 { return t.lane.Add(kernel.U(uint32(k * s.GroupLanes))) }
	xs := make([]kernel.F32, s.Each)
	for k := range xs {
		i := at(k)
		v := kernel.As[kernel.F32](b, x.at(place(s.From, i.Min(cols.Sub(kernel.U(1))))))
		xs[k] = kernel.Select(i.Lt(cols), v, numberOf(kernel.U(ninfKey)))
	}
	key := t.ofColumn("keys", greatestKey(xs), kernel.U32.Max)
	greatest := numberOf(key.Max(kernel.U(lowestKey)))
	es := exponentialsOf(xs, greatest)
	sum := t.ofColumn("sums", tree(es).AsU32(), func(a, b kernel.U32) kernel.U32 { return a.AsF32().Add(b.AsF32()).AsU32() }).AsF32()
	undefined := key.Ge(kernel.U(infKey)).Or(key.Le(kernel.U(ninfKey)))
	factor := kernel.Select(undefined, nan(), sum.Recip())
	log := kernel.Select(undefined, nan(), sum.Log())
	for k := range es {
		i := at(k)
		b.If(is.And(i.Lt(cols)), func() {
			y := es[k].Mul(factor)
			if s.Log {
				y = xs[k].Sub(greatest).Sub(log)
			}
			put(place(s.To, i), kernel.Dyn(y))
		})
	}
}}

// ofColumn merges the words of all lanes of the lane group, in each of its lanes. A key is never a float32 on the way, because its bits may
// be those of a NaN, which devices may change.
func (t *laneGroup) ofColumn(name string, v kernel.U32, merge func(a, b kernel.U32) kernel.U32) kernel.U32 {
	if t.GroupLanes == 1 {
		return v
	}
	all := kernel.Shared[kernel.U32](t.b, "column_"+name, t.lanes())
	all.Set(t.b.LocalX(), v)
	t.b.Barrier()
	return chain(t.GroupLanes, merge, func(i int) kernel.U32 { return all.At(t.index.Add(kernel.U(uint32(i * t.Groups)))) })
}

// softmaxColumnSpec specialises the kernel.
type softmaxColumnSpec struct {
	Type     op.DType
	Log      bool
	From, To bool // the operand, and the result, is [Outer Cols Inner] in memory; otherwise it is row by row
	softmaxColumnSchedule
}

type softmaxColumnSchedule struct {
	groupLayout
	Each int // elements of a column in a lane
}

// softmaxColumnSchedules has the sizes of lane groups, each for columns of up to GroupLanes*Each elements. Sixteen
// neighbouring columns are 64 bytes of float32.
var softmaxColumnSchedules = lazyTable[foldOf, softmaxColumnSchedule]{make: func() table[foldOf, softmaxColumnSchedule] {
	return table[foldOf, softmaxColumnSchedule]{
		ofColumns(1, 128, 8), ofColumns(1, 128, 16), ofColumns(4, 32, 8), ofColumns(4, 32, 16),
		ofColumns(8, 32, 16), ofColumns(8, 32, 32), ofColumns(16, 16, 32), ofColumns(16, 16, 64),
	}
}}

// maxSoftmaxColumn is the maximum number of elements of a column.
const maxSoftmaxColumn = 16 * 64

func ofColumns(lanes, columns, each int) variant[foldOf, softmaxColumnSchedule] {
	return variant[foldOf, softmaxColumnSchedule]{
		fmt.Sprintf("columns-%dx%d", lanes, each),
		func(m foldOf, t *Target) bool { return m.Cols <= lanes*each },
		softmaxColumnSchedule{groupLayout{GroupLanes: lanes, Groups: columns, Across: lanes > 1}, each},
	}
}

// softmaxReads reports whether softmaxColumns reads, or writes, arrays of shape s in layout l.
func softmaxReads(s op.Shape, l *op.Layout) bool {
	rows, cols := s.Rows()
	_, inner, ok := l.Columns(rows, cols)
	return ok && inner >= minScanInner && cols <= maxSoftmaxColumn
}

// softmaxFamily returns the family of softmax and its logarithm.
func softmaxFamily() *family {
	f := rowFamily(&softmaxes)
	rows := f.plan
	f.variants = append(f.variants, softmaxColumnSchedules.get().names()...)
	f.plan = func(q *request) (*Plan, error) {
		if q.In[0].Layout != nil || q.Out[0].Layout != nil {
			return planSoftmaxColumns(q)
		}
		return rows(q)
	}
	f.reads = func(at int, s op.Shape, l *op.Layout) bool { return at == 0 && softmaxReads(s, l) }
	f.writes = softmaxReads
	return f
}

func planSoftmaxColumns(q *request) (*Plan, error) {
	m, err := columnsOf(q)
	if err != nil {
		return nil, err
	}
	w, name, err := softmaxColumnSchedules.get().choose(q, m)
	if err != nil {
		return nil, err
	}
	s := softmaxColumnSpec{q.In[0].Type, q.Op == op.LogSoftmax, q.In[0].Layout != nil, q.Out[0].Layout != nil, w}
	var p planner
	params := foldParams{Rows: uint32(m.rows()), Cols: uint32(m.Cols), Inner: uint32(m.Inner)}
	p.stage(softmaxColumns.of(s, q.epilogue), w.groups(m.rows()), params, append(q.inputs(), q.outputs()...)...)
	return p.done(name)
}
