//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

const iotaLanes = 256

type iotaParams struct{ N uint32 }

// iotas writes consecutive numbers. A lane writes one of them.
var iotas = maker[iotaParams, struct{}]{name: "iota", build: func(b *kernel.Builder, p *iotaParams, _ struct{}, e *epilogue) {
	b.LocalSize(iotaLanes, 1, 1)
	start := kernel.Input[kernel.U32](b, "start")
	put := e.result(b, op.U32)
	i := b.Index()
	b.If(i.Lt(b.U32(&p.N)), func() { put(i, kernel.Dyn(start.At(kernel.U(0)).Add(i))) })
}}

func planIota(q *request) (*Plan, error) {
	n := size(q.shapes[0])
	var p planner
	p.stage(iotas.of(struct{}{}, q.epilogue), kernel.GridFor(n, iotaLanes), iotaParams{uint32(n)}, append(q.inputs(), q.outputs()...)...)
	return p.done("")
}
