//go:build !js || !nowebgpu

package portable

import (
	"math"

	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// expertLanes is the layout of the lane groups. Each lane group computes one element of the result.
var expertLanes = groupLayout{GroupLanes: 32, Groups: 4}

type expertsSpec struct {
	Type, Weights op.DType
	Long          bool
}

type expertsParams struct {
	Size    uint32 // elements of the result
	N, K    uint32
	Each    uint32 // rows of the result for each row of a
	Experts uint32
}

// experts multiplies a row of a by the matrix that its id names. It reads no other matrix.
var experts = maker[expertsParams, expertsSpec]{name: "matmul_experts", build: func(b *kernel.Builder, p *expertsParams, s expertsSpec, e *epilogue) {
	t := newLaneGroup(b, expertLanes)
	a := input(b, "a", s.Type)
	var w func(i kernel.U32) kernel.F32
	if s.Weights.Quantized() {
		w = inputBlocks(b, "w", s.Weights).element
	} else {
		w = input(b, "w", s.Weights)
	}
	ids := kernel.Input[kernel.I32](b, "ids")
	put := e.result(b, s.Type)
	n, k, count := b.U32(&p.N), b.U32(&p.K), b.U32(&p.Size)
	at := t.number.Min(count.Sub(kernel.U(1))) // lane groups beyond the end compute the last element again
	row := at.Div(n)
	expert, is := rowOf(ids.At(row), b.U32(&p.Experts))
	x := row.Div(b.U32(&p.Each)).Mul(k)
	y := kernel.Select(is, expert, kernel.U(0)).Mul(n).Add(at.Mod(n)).Mul(k)
	sums := addUp(b, t.lane, k, t.GroupLanes, 1, s.Long, func(j kernel.U32) []kernel.F32 {
		return []kernel.F32{a(x.Add(j)).Mul(w(y.Add(j)))}
	})
	total := kernel.Select(is, t.sum(sums[0]), nan())
	b.If(t.lane.Eq(kernel.U(0)).And(t.number.Lt(count)), func() { put(at, kernel.Dyn(total)) })
}}

func planExperts(q *request) (*Plan, error) {
	x, err := op.ExpertsOf([]op.Shape{q.In[0].Shape, q.In[1].Shape, q.In[2].Shape})
	if err != nil {
		return nil, err
	}
	if x.Experts == 0 {
		return planFill(q, float32(math.NaN()))
	}
	n := x.Rows * x.N
	s := expertsSpec{q.In[0].Type, q.In[1].Type, x.K > exactTerms*expertLanes.GroupLanes}
	params := expertsParams{Size: uint32(n), N: uint32(x.N), K: uint32(x.K), Each: uint32(x.Each), Experts: uint32(x.Experts)}
	var p planner
	p.stage(experts.of(s, q.epilogue), expertLanes.groups(n), params, append(p.withGrid(q, 1), q.outputs()...)...)
	return p.done("")
}
