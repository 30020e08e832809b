//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

const fillLanes = 256

type fillParams struct {
	N     uint32
	Value float32
}

// fill sets each element of the first result to the same value: the result of an operation without
// elements.
var fill = maker[fillParams, op.DType]{name: "fill", build: func(b *kernel.Builder, p *fillParams, t op.DType, e *epilogue) {
	b.LocalSize(fillLanes, 1, 1)
	put := e.result(b, t)
	i := b.Index()
	b.If(i.Lt(b.U32(&p.N)), func() {
		v := kernel.Dyn(b.F32(&p.Value))
		if r := irhook.Register(uint8(t)); r != ir.F32 {
			v = Inline(b, []*ir.Node{ir.NewConvert(ir.NewArg(0, ir.F32), r)}, []kernel.Dynamic{v}, nil)[0]
		}
		put(i, v)
	})
}}

// planFill returns a plan that sets all results to v.
func planFill(q *request, v float32) (*Plan, error) {
	n := size(q.shapes[0])
	var p planner
	p.stage(fill.of(q.types[0], q.epilogue), kernel.GridFor(n, fillLanes), fillParams{uint32(n), v}, q.outputs()...)
	return p.done("")
}
