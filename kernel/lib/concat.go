//go:build !js || !nowebgpu

package lib

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

func init() {
	register(&family{plan: planConcat, variants: concatWays.names()}, op.Concat)
}

const concatLanes = 256

// concatOf is what decides how parts are moved.
type concatOf struct {
	Vectors bool // all rows are vectors of four, at multiples of four
}

var concatWays = table[concatOf, int]{
	{"vector", func(m concatOf, _ *Target) bool { return m.Vectors }, 4},
	{"scalar", func(concatOf, *Target) bool { return true }, 1},
}

// concatParams are counted in vectors.
type concatParams struct {
	N     uint32 // of the part
	Row   uint32 // of a row of the part
	Pitch uint32 // of a row of the result
	At    uint32 // where the part begins in a row
}

type concatSpec struct {
	Type  op.DType
	Width int
}

// concats moves one part to its place in the result, one vector a lane.
var concats = newMaker("concat", func(b *kernel.Builder, p *concatParams, s concatSpec, e *epilogue) {
	b.LocalSize(concatLanes, 1, 1)
	var move func(to, from kernel.U32)
	if s.Width == 4 {
		x, y := kernel.Input[kernel.Vec4U](b, "x"), kernel.Output[kernel.Vec4U](b, "out")
		move = func(to, from kernel.U32) { y.Set(to, x.At(from)) }
	} else {
		x, put := inputBits(b, "x", s.Type), e.bits(b, s.Type)
		move = func(to, from kernel.U32) { put(to, x(from)) }
	}
	row := b.U32(&p.Row)
	i := b.Index()
	b.If(i.Lt(b.U32(&p.N)), func() {
		move(i.Div(row).Mul(b.U32(&p.Pitch)).Add(b.U32(&p.At)).Add(i.Mod(row)), i)
	})
})

// planConcat has a launch for each part that has elements.
func planConcat(q *request) (*Plan, error) {
	shapes := make([]op.Shape, len(q.In))
	for i, x := range q.In {
		shapes[i] = x.Shape
	}
	axis, err := op.ConcatOf(&q.Attrs, shapes)
	if err != nil {
		return nil, err
	}
	inner := size(q.shapes[0][axis+1:])
	m := concatOf{Vectors: q.epilogue == nil && q.In[0].Type.Size() == 4}
	for _, s := range shapes {
		m.Vectors = m.Vectors && s[axis]*inner%4 == 0
	}
	width, name, err := concatWays.choose(q, m)
	if err != nil {
		return nil, err
	}
	var p planner
	at, pitch := 0, q.shapes[0][axis]*inner
	in := q.inputs()
	for i, s := range shapes {
		row, n := s[axis]*inner, size(s)
		if n > 0 {
			params := concatParams{uint32(n / width), uint32(row / width), uint32(pitch / width), uint32(at / width)}
			p.stage(concats.of(concatSpec{q.In[0].Type, width}, q.epilogue), kernel.GridFor(n/width, concatLanes), params,
				append([]Ref{in[i]}, q.outputs()...)...)
		}
		at += row
	}
	return p.done(name)
}
