//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// placeParams are the parameters of slicesAt and updates. N and Inner count vectors.
type placeParams struct {
	N      uint32 // vectors that the kernel moves
	Inner  uint32 // vectors of a row
	Extent uint32 // rows of x for each outer index
	Part   uint32 // rows that the kernel moves for each outer index
}

// placed returns the position of vector i of the moved vectors: its outer index, its row, and its
// index in the row.
func placed(b *kernel.Builder, p *placeParams, i kernel.U32) (outer, row, rest kernel.U32) {
	inner, part := b.U32(&p.Inner), b.U32(&p.Part)
	row = i.Div(inner)
	return row.Div(part), row.Mod(part), i.Mod(inner)
}

// slicesAt reads the rows from position at on. A lane moves one vector.
var slicesAt = maker[placeParams, concatSpec]{name: "slice_at", build: func(b *kernel.Builder, p *placeParams, s concatSpec, e *epilogue) {
	b.LocalSize(concatLanes, 1, 1)
	at := kernel.Input[kernel.I32](b, "at")
	move := s.mover(b, "x", e)
	i := b.Index()
	b.If(i.Lt(b.U32(&p.N)), func() {
		outer, row, rest := placed(b, p, i)
		extent, part := b.U32(&p.Extent), b.U32(&p.Part)
		start := at.At(kernel.U(0)).Max(kernel.I(0)).U32().Min(extent.Sub(part))
		move(i, outer.Mul(extent).Add(start).Add(row).Mul(b.U32(&p.Inner)).Add(rest))
	})
}}

// updates writes the rows from position at on. A lane moves one vector.
var updates = maker[placeParams, concatSpec]{name: "update", build: func(b *kernel.Builder, p *placeParams, s concatSpec, e *epilogue) {
	b.LocalSize(concatLanes, 1, 1)
	at := kernel.Input[kernel.I32](b, "at")
	move := s.mover(b, "v", e)
	i := b.Index()
	b.If(i.Lt(b.U32(&p.N)), func() {
		outer, row, rest := placed(b, p, i)
		extent := b.U32(&p.Extent)
		to := row.Add(at.At(kernel.U(0)).U32()) // a negative row is a large unsigned number
		b.If(to.Lt(extent), func() { move(outer.Mul(extent).Add(to).Mul(b.U32(&p.Inner)).Add(rest), i) })
	})
}}

// places returns the sizes of a request, the width of the moved vectors, the name of the variant
// and the parameters.
func (q *request) places() (op.Placed, int, string, placeParams, error) {
	var shapes []op.Shape
	for _, x := range q.In {
		shapes = append(shapes, x.Shape)
	}
	s, err := op.PlacedOf(&q.Attrs, shapes)
	if err != nil {
		return s, 0, "", placeParams{}, err
	}
	moved := &q.In[0]
	if q.Op == op.Update {
		moved = &q.In[2]
	}
	w, name, err := concatSchedules.choose(q, concatOf{Vectors: q.epilogue == nil && s.Inner%4 == 0 && concatVectors(moved)})
	if err != nil {
		return s, 0, "", placeParams{}, err
	}
	n := s.Outer * s.Part * s.Inner / w
	return s, w, name, placeParams{uint32(n), uint32(s.Inner / w), uint32(s.Extent), uint32(s.Part)}, nil
}

func planSliceAt(q *request) (*Plan, error) {
	_, w, name, params, err := q.places()
	if err != nil {
		return nil, err
	}
	var p planner
	in := q.inputs()
	p.stage(slicesAt.of(concatSpec{Type: q.In[0].Type, Width: w}, q.epilogue), kernel.GridFor(int(params.N), concatLanes), params,
		append([]Ref{in[1], in[0]}, q.outputs()...)...)
	return p.done(name)
}

// planUpdate plans an update. It copies x first, unless the update is in place.
func planUpdate(q *request) (*Plan, error) {
	s, w, name, params, err := q.places()
	if err != nil {
		return nil, err
	}
	var p planner
	in, spec := q.inputs(), concatSpec{Type: q.In[0].Type, Width: w}
	if n := s.Outer * s.Extent * s.Inner / w; !q.InPlace {
		whole := concatParams{uint32(n), uint32(n), uint32(n), 0}
		p.stage(concats.of(spec, q.epilogue), kernel.GridFor(n, concatLanes), whole, append([]Ref{in[0]}, q.outputs()...)...)
	}
	if params.N > 0 {
		p.stage(updates.of(spec.of(&q.In[2]), q.epilogue), kernel.GridFor(int(params.N), concatLanes), params, append([]Ref{in[1], in[2]}, q.outputs()...)...)
	}
	return p.done(name)
}
