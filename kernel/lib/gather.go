package lib

import (
	"math"

	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

func init() {
	register(&family{plan: planGather, variants: gatherWays.names(), quantised: true}, op.Gather)
}

const gatherLanes = 256

type gatherOf struct {
	Table, Ids, D int
	Vectors       bool // rows can be moved as vectors
}

var gatherWays = table[gatherOf, int]{
	{"vector", func(m gatherOf, _ *Target) bool { return m.Vectors }, 4},
	{"scalar", func(gatherOf, *Target) bool { return true }, 1},
}

type gatherParams struct {
	N     uint32 // vectors of the result
	D     uint32 // vectors of a row
	Table uint32 // rows
}

type gatherSpec struct {
	Type  op.DType
	Width int
}

// gathers moves one vector a lane. A row that is not there is NaN.
var gathers = newMaker("gather", func(b *kernel.Builder, p *gatherParams, s gatherSpec, e *epilogue) {
	b.LocalSize(gatherLanes, 1, 1)
	ids := kernel.Input[kernel.I32](b, "ids")
	var move func(to, from kernel.U32, is kernel.Bool)
	if s.Width == 4 {
		x, y := kernel.Input[kernel.Vec4U](b, "table"), kernel.Output[kernel.Vec4U](b, "out")
		move = func(to, from kernel.U32, is kernel.Bool) {
			y.Set(to, kernel.Select(is, x.At(from), kernel.U(nanBits).Splat4()))
		}
	} else {
		x, put := inputBits(b, "table", s.Type), e.bits(b, s.Type)
		move = func(to, from kernel.U32, is kernel.Bool) { put(to, kernel.Select(is, x(from), kernel.U(nanBits))) }
	}
	d := b.U32(&p.D)
	i := b.Index()
	b.If(i.Lt(b.U32(&p.N)), func() {
		id := ids.At(i.Div(d)).U32()
		is := id.Lt(b.U32(&p.Table)) // a negative one is a large one
		move(i, kernel.Select(is, id, kernel.U(0)).Mul(d).Add(i.Mod(d)), is)
	})
})

func planGather(q *request) (*Plan, error) {
	if q.In[0].Type.Quantized() {
		return planGatherBlocks(q)
	}
	m := gatherOf{Table: q.In[0].Shape[0], Ids: size(q.In[1].Shape), D: q.In[0].Shape[1]}
	if m.Table == 0 {
		return planFill(q, float32(math.NaN()))
	}
	m.Vectors = m.D%4 == 0 && q.epilogue == nil && q.In[0].Type == op.F32
	width, name, err := gatherWays.choose(q, m)
	if err != nil {
		return nil, err
	}
	n := m.Ids * m.D / width
	params := gatherParams{uint32(n), uint32(m.D / width), uint32(m.Table)}
	var p planner
	in := q.inputs()
	p.stage(gathers.of(gatherSpec{q.In[0].Type, width}, q.epilogue), kernel.GridFor(n, gatherLanes), params,
		append([]Ref{in[1], in[0]}, q.outputs()...)...)
	return p.done(name)
}

// blockGathers makes one element a lane of a quantised table.
var blockGathers = newMaker("gather_q", func(b *kernel.Builder, p *gatherParams, t op.DType, e *epilogue) {
	b.LocalSize(gatherLanes, 1, 1)
	ids := kernel.Input[kernel.I32](b, "ids")
	table, put := inputBlocks(b, "table", t), e.result(b, op.F32)
	d := b.U32(&p.D)
	i := b.Index()
	b.If(i.Lt(b.U32(&p.N)), func() {
		id := ids.At(i.Div(d)).U32()
		v := kernel.NewVar(b, "v", nan())
		b.If(id.Lt(b.U32(&p.Table)), func() { v.Set(table.element(id.Mul(d).Add(i.Mod(d)))) })
		put(i, kernel.Dyn(v.Get()))
	})
})

func planGatherBlocks(q *request) (*Plan, error) {
	s := q.In[0].Shape
	if s[0] == 0 {
		return planFill(q, float32(math.NaN()))
	}
	n := size(q.In[1].Shape) * s[1]
	var p planner
	in := p.withGrid(q, 0)
	in = append([]Ref{in[len(in)-1]}, in[:len(in)-1]...)
	p.stage(blockGathers.of(q.In[0].Type, q.epilogue), kernel.GridFor(n, gatherLanes), gatherParams{uint32(n), uint32(s[1]), uint32(s[0])},
		append(in, q.outputs()...)...)
	return p.done("")
}
