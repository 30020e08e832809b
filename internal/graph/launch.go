package graph

import (
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/op"
)

// Kernel is the kernel of a Launch node: a program over a grid of workgroups.
//
// Operand i of the node is the value of the program's binding i: an array that it reads, or the old
// contents of an array that it writes, broadcast to the shape of the result. A program with
// uniforms has their block as one more operand, an array of U32. The results are the bindings that
// the program writes, in order; the node itself is the first of them.
type Kernel struct {
	// Program is compared by its address: equal programs come from one kernel.
	Program *ir.Program
	Grid    [3]uint32
	Results []Array
	// Positions returns the program with positions in the author's source.
	Positions func() (*ir.Program, error)
}

// Nodes returns the node of the launch, which must become node id of the graph and runs its launch
// ref, followed by the nodes of its additional results.
func (k *Kernel) Nodes(id ID, ref int32, in []ID) []Node {
	ns := []Node{{Kind: Launch, Ref: ref, Type: k.Results[0].Type, Shape: k.Results[0].Shape, NIn: uint8(len(in))}}
	copy(ns[0].In[:], in)
	for i, r := range k.Results[1:] {
		ns = append(ns, Node{Kind: Result, Ref: int32(i + 1), Type: r.Type, Shape: r.Shape, NIn: 1, In: [MaxInputs]ID{id}})
	}
	return ns
}

// Array is the form of an array.
type Array struct {
	Type  op.DType
	Shape op.Shape
}

// Written returns the numbers of the bindings that p writes.
func Written(p *ir.Program) []int {
	var w []int
	for i := range p.Bindings {
		if p.Bindings[i].Access != ir.ReadOnly {
			w = append(w, i)
		}
	}
	return w
}

func (k *Kernel) equal(o *Kernel) bool {
	if k.Program != o.Program || k.Grid != o.Grid || len(k.Results) != len(o.Results) {
		return false
	}
	for i := range k.Results {
		if k.Results[i].Type != o.Results[i].Type || !k.Results[i].Shape.Equal(o.Results[i].Shape) {
			return false
		}
	}
	return true
}
