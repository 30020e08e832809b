//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

var cumsumSchedules = table[rowsOf, reduceSchedule]{
	{"quad", func(m rowsOf, t *Target) bool { return m.Cols <= 16 }, reduceSchedule{groupLayout: groupLayout{GroupLanes: 4, Groups: 32}}},
	{"team", func(m rowsOf, t *Target) bool { return m.Cols <= 256 }, reduceSchedule{groupLayout: groupLayout{GroupLanes: 32, Groups: 4}}},
	{"split-subgroups", func(m rowsOf, t *Target) bool { return t.Subgroups && worthSplitting(m) }, reduceSchedule{groupLayout{GroupLanes: 256, Groups: 1, Subgroups: true}, true}},
	{"split", func(m rowsOf, t *Target) bool { return worthSplitting(m) }, reduceSchedule{groupLayout{GroupLanes: 256, Groups: 1}, true}},
	{"group-subgroups", func(m rowsOf, t *Target) bool { return t.Subgroups && m.Cols <= longestRow }, reduceSchedule{groupLayout: groupLayout{GroupLanes: 256, Groups: 1, Subgroups: true}}},
	{"group", func(m rowsOf, t *Target) bool { return m.Cols <= longestRow }, reduceSchedule{groupLayout: groupLayout{GroupLanes: 256, Groups: 1}}},
}

type cumsumSpec struct {
	Type op.DType
	reduceSchedule
}

// cumsumInRegisters is the number of neighbouring elements that a lane adds in its registers.
const cumsumInRegisters = 4

// cumsums computes running sums of pieces of rows. Each piece starts from a given sum: the sum of
// the earlier parts of the row, if the row has parts.
var cumsums = maker[reduceParams, cumsumSpec]{name: "cumsum", build: func(b *kernel.Builder, p *reduceParams, s cumsumSpec, e *epilogue) {
	t := newLaneGroup(b, s.groupLayout)
	x := input(b, "x", s.Type)
	var sums kernel.Buffer[kernel.F32]
	if s.Split {
		sums = kernel.Input[kernel.F32](b, "sums")
	}
	put := e.result(b, s.Type)
	c := pieceOf(b, p, t, s.Split)
	size := b.U32(&p.Part)
	all := kernel.NewVar(b, "all", kernel.F(0))
	if s.Split {
		part := c.From.Sub(c.Row).Div(size)
		all.Set(t.sum(total(b, c.Number.Sub(part).Add(t.lane), c.Number, s.GroupLanes, func(acc kernel.F32, i kernel.U32) kernel.F32 {
			return acc.Add(sums.At(i))
		})))
	}
	chunk := kernel.U(uint32(s.GroupLanes * cumsumInRegisters))
	iterations := chunk.Mul(kernel.U(sumTerms))
	t.again()
	b.ForStep(kernel.U(0), size, iterations, func(at kernel.U32) {
		some := kernel.NewVar(b, "some", kernel.F(0))
		b.ForStep(at, at.Add(iterations).Min(size), chunk, func(at kernel.U32) {
			from := c.From.Add(at).Add(t.lane.Mul(kernel.U(cumsumInRegisters)))
			run := kernel.NewVars(b, "run", cumsumInRegisters, kernel.F(0))
			for k := range run {
				i := from.Add(kernel.U(uint32(k)))
				b.If(i.Lt(c.To), func() { run[k].Set(x(i)) })
				if k > 0 {
					run[k].Set(run[k-1].Get().Add(run[k].Get()))
				}
			}
			before, whole := t.scan(run[cumsumInRegisters-1].Get())
			for k := range run {
				i := from.Add(kernel.U(uint32(k)))
				b.If(i.Lt(c.To), func() {
					put(i, kernel.Dyn(all.Get().Add(some.Get().Add(before.Add(run[k].Get())))))
				})
			}
			some.Set(some.Get().Add(whole))
		})
		all.Set(all.Get().Add(some.Get()))
	})
}}

func planCumsum(q *request) (*Plan, error) {
	if !q.In[0].Type.Float() || q.In[0].Layout != nil || q.Out[0].Layout != nil || scanSchedules.has(q.Variant) {
		return planScan(q)
	}
	a := rowsOf{}
	a.Rows, a.Cols = q.In[0].Shape.Rows()
	w, name, err := cumsumSchedules.choose(q, a)
	if err != nil {
		return nil, err
	}
	var p planner
	s := cumsumSpec{q.In[0].Type, w}
	params := reduceParams{Rows: uint32(a.Rows), Cols: uint32(a.Cols), Part: uint32(a.Cols)}
	if !w.Split {
		p.stage(cumsums.of(s, q.epilogue), w.groups(a.Rows), params, append(q.inputs(), q.outputs()...)...)
		return p.done(name)
	}
	n, length := parts(a.Cols, maxParts)
	params.Part = uint32(length)
	pieces := p.scratch(a.Rows * n)
	p.stage(sums.of(reduceSpec{Op: "sum", Type: s.Type, reduceSchedule: w, Unit: 1}, nil), w.groups(a.Rows*n), params, append(q.inputs(), pieces)...)
	p.stage(cumsums.of(s, q.epilogue), w.groups(a.Rows*n), params, append(append(q.inputs(), pieces), q.outputs()...)...)
	return p.done(name)
}
