//go:build !js || !nowebgpu

package portable

import (
	"math"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

const gatherLanes = 256

type gatherOf struct {
	Table, IDs, D int
	Vectors       bool // rows can be moved in vectors
}

var gatherSchedules = table[gatherOf, int]{
	{"vector", func(m gatherOf, _ *Target) bool { return m.Vectors }, 4},
	{"scalar", func(gatherOf, *Target) bool { return true }, 1},
}

type gatherParams struct {
	N     uint32 // vectors of the result
	D     uint32 // vectors of a row
	Table uint32 // rows of a table
	IDs   uint32 // rows of the result for each table
}

type gatherSpec struct {
	Type  op.DType
	Width int
	Lead  bool // there is more than one table
}

// missing returns the bits of a missing element.
func (s gatherSpec) missing() kernel.U32 {
	if s.Type.Float() {
		return kernel.U(nanBits)
	}
	return kernel.U(0)
}

// rowOf returns the row that an id names in a table with the given number of rows, and reports
// whether the row exists.
func rowOf(id kernel.I32, rows kernel.U32) (row kernel.U32, is kernel.Bool) {
	row = kernel.Select(id.Lt(kernel.I(0)), id.U32().Add(rows), id.U32())
	return row, row.Lt(rows) // a negative row is a large unsigned number
}

// gathers copies rows. A lane moves one vector.
var gathers = maker[gatherParams, gatherSpec]{name: "gather", build: func(b *kernel.Builder, p *gatherParams, s gatherSpec, e *epilogue) {
	b.LocalSize(gatherLanes, 1, 1)
	ids := kernel.Input[kernel.I32](b, "ids")
	var move func(to, from kernel.U32, is kernel.Bool)
	if s.Width == 4 {
		x, y := kernel.Input[kernel.Vec4U](b, "table"), kernel.Output[kernel.Vec4U](b, "out")
		move = func(to, from kernel.U32, is kernel.Bool) {
			y.Set(to, kernel.Select(is, x.At(from), s.missing().Splat4()))
		}
	} else {
		x, put := inputBits(b, "table", s.Type), e.bits(b, s.Type)
		move = func(to, from kernel.U32, is kernel.Bool) { put(to, kernel.Select(is, x(from), s.missing())) }
	}
	d := b.U32(&p.D)
	i := b.Index()
	b.If(i.Lt(b.U32(&p.N)), func() {
		at, rows := i.Div(d), b.U32(&p.Table)
		k, first := at, kernel.U(0)
		if s.Lead {
			n := b.U32(&p.IDs)
			k, first = at.Mod(n), at.Div(n).Mul(rows)
		}
		row, is := rowOf(ids.At(k), rows)
		move(i, kernel.Select(is, first.Add(row), kernel.U(0)).Mul(d).Add(i.Mod(d)), is)
	})
}}

func planGather(q *request) (*Plan, error) {
	if q.In[0].Type.Quantized() {
		return planGatherBlocks(q)
	}
	s, err := op.IndexedOf(&q.Attrs, q.In[0].Shape, q.In[1].Shape)
	if err != nil {
		return nil, err
	}
	if s.Extent == 0 {
		if q.In[0].Type.Float() {
			return planFill(q, float32(math.NaN()))
		}
		return planFill(q, 0)
	}
	m := gatherOf{Table: s.Extent, IDs: s.IDs, D: s.Inner}
	m.Vectors = m.D%4 == 0 && q.epilogue == nil && q.In[0].Type.Size() == 4
	width, name, err := gatherSchedules.choose(q, m)
	if err != nil {
		return nil, err
	}
	n := s.Outer * m.IDs * m.D / width
	params := gatherParams{uint32(n), uint32(m.D / width), uint32(m.Table), uint32(m.IDs)}
	var p planner
	in := q.inputs()
	p.stage(gathers.of(gatherSpec{q.In[0].Type, width, s.Outer > 1}, q.epilogue), kernel.GridFor(n, gatherLanes), params,
		append([]Ref{in[1], in[0]}, q.outputs()...)...)
	return p.done(name)
}

// blockGathers gathers rows of a quantised table. A lane decodes one element.
var blockGathers = maker[gatherParams, op.DType]{name: "gather_q", build: func(b *kernel.Builder, p *gatherParams, t op.DType, e *epilogue) {
	b.LocalSize(gatherLanes, 1, 1)
	ids := kernel.Input[kernel.I32](b, "ids")
	table, put := inputBlocks(b, "table", t), e.result(b, op.F32)
	d := b.U32(&p.D)
	i := b.Index()
	b.If(i.Lt(b.U32(&p.N)), func() {
		row, is := rowOf(ids.At(i.Div(d)), b.U32(&p.Table))
		v := kernel.NewVar(b, "v", nan())
		b.If(is, func() { v.Set(table.element(row.Mul(d).Add(i.Mod(d)))) })
		put(i, kernel.Dyn(v.Get()))
	})
}}

func planGatherBlocks(q *request) (*Plan, error) {
	s := q.In[0].Shape
	if len(s) != 2 {
		return nil, fmt.Errorf("gather: the quantised table has shape %v; it must have two axes, [v d]: %w", s, op.ErrShape)
	}
	if s[0] == 0 {
		return planFill(q, float32(math.NaN()))
	}
	ids := size(q.In[1].Shape)
	n := ids * s[1]
	var p planner
	in := p.withGrid(q, 0)
	in = append([]Ref{in[len(in)-1]}, in[:len(in)-1]...)
	p.stage(blockGathers.of(q.In[0].Type, q.epilogue), kernel.GridFor(n, gatherLanes), gatherParams{uint32(n), uint32(s[1]), uint32(s[0]), uint32(ids)},
		append(in, q.outputs()...)...)
	return p.done("")
}
