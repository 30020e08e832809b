package lib

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

const fillLanes = 256

type fillParams struct {
	N     uint32
	Value float32
}

// fill gives every element of the first result the same value: what an operation
// says of no elements.
var fill = newMaker("fill", func(b *kernel.Builder, p *fillParams, t op.DType, e *epilogue) {
	b.LocalSize(fillLanes, 1, 1)
	put := e.bits(b, t)
	i := b.Index()
	b.If(i.Lt(b.U32(&p.N)), func() { put(i, b.F32(&p.Value).AsU32()) })
})

// planFill returns the plan for results that all are v, 0 if they are of another than a
// floating type.
func planFill(q *request, v float32) (*Plan, error) {
	n := size(q.shapes[0])
	var p planner
	p.stage(fill.of(q.types[0], q.epilogue), kernel.GridFor(n, fillLanes), fillParams{uint32(n), v}, q.outputs()...)
	return p.done("")
}
