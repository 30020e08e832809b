// Package graph holds recorded work as a list of immutable nodes in static single assignment form,
// and the passes that improve it. A node's operands are earlier nodes, so the order of the list is
// an order of evaluation. The only side effect is Store; stores keep their position in the list
// relative to the nodes that read the stored memory.
//
// A pass is a value that turns a graph into another one. [Fuse] groups the
// nodes of the result into kernels; package engine makes a program of the
// groups.
package graph

import (
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/op"
)

// ID is the place of a node in its graph.
type ID int32

// Absent means that an optional operand is absent.
const Absent ID = -1

// Kind is the kind of a node.
type Kind uint8

const (
	// Compute applies Op to In.
	Compute Kind = iota
	// Input is host memory that is bound when the graph runs: reference Ref.
	Input
	// Resident is device memory: reference Ref from byte Off on, with its contents at this point of
	// the list.
	Resident
	// Constant is known now: Graph.Data[Ref].
	Constant
	// Store writes In[0] to reference Ref from byte Off on.
	Store
	// Result is result Ref, from 1 on, of In[0], an operation or a launch with
	// several; the node of that itself is result 0.
	Result
	// Launch runs Graph.Launches[Ref].
	Launch
)

// MaxInputs is the most operands of a node: a launch has one for each of 8
// buffers and one for its parameters.
const MaxInputs = 9

// Node is one value, or one effect.
type Node struct {
	Kind  Kind
	Type  op.DType
	NIn   uint8
	Ref   int32
	In    [MaxInputs]ID
	Op    *op.Operation
	Attrs op.Attrs
	Shape op.Shape
	Off   int64
}

// Inputs returns the operands; some may be Absent.
func (n *Node) Inputs() []ID { return n.In[:n.NIn] }

// Graph is a list of nodes and the values that leave it.
type Graph struct {
	Nodes []Node
	// Outputs are the values that come back to the host, in order; one may
	// occur twice.
	Outputs []ID
	// Data are the contents of the constants.
	Data [][]byte
	// Launches are the kernels that Launch nodes run.
	Launches []*Kernel
}

// Add appends a node and returns its place.
func (g *Graph) Add(n Node) ID {
	g.Nodes = append(g.Nodes, n)
	return ID(len(g.Nodes) - 1)
}

// Pass is a step of planning: a function from graph to graph with a name.
type Pass struct {
	Name string
	Run  func(*Graph) (*Graph, error)
}

// Passes are the passes that every graph goes through, in order. In pages without batches graphs go
// through [Snapshot] only.
func Passes() []Pass {
	return []Pass{Simplify, Fold, CSE, DCE, Products, Snapshot}
}

// Apply runs the passes one after the other.
func Apply(g *Graph, passes ...Pass) (*Graph, error) {
	for _, p := range passes {
		var err error
		if g, err = p.Run(g); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	return g, nil
}

// rewrite builds a graph node by node: f gets each node with its operands
// already renamed and says where its value is found in out, usually by
// out.Add(n).
func (g *Graph) rewrite(f func(out *Graph, old ID, n Node) (ID, error)) (*Graph, error) {
	out := &Graph{Nodes: make([]Node, 0, len(g.Nodes)), Data: g.Data, Launches: g.Launches}
	to := make([]ID, len(g.Nodes))
	for i := range g.Nodes {
		n := g.Nodes[i]
		for j, in := range n.Inputs() {
			if in != Absent {
				n.In[j] = to[in]
			}
		}
		id, err := f(out, ID(i), n)
		if err != nil {
			return nil, err
		}
		to[i] = id
	}
	for _, o := range g.Outputs {
		out.Outputs = append(out.Outputs, to[o])
	}
	return out, nil
}

// View reports whether n is the elements of its operand seen in another way.
func (n *Node) View() bool { return n.Kind == Compute && n.Op.View() }

// Seen returns the node whose memory has the value of id, and the layout of the elements there, or
// false if no layout describes them.
func (g *Graph) Seen(id ID) (base ID, l op.Layout, ok bool) {
	n := &g.Nodes[id]
	if !n.View() {
		size, err := n.Shape.Size()
		return id, op.RowMajor(size), err == nil
	}
	if base, l, ok = g.Seen(n.In[0]); ok {
		x := &g.Nodes[n.In[0]]
		l, ok = n.Op.Layout(&n.Attrs, l, x.Shape, n.Shape, n.Type)
	}
	return base, l, ok
}

// Plain reports whether the value of id is the whole memory of its base in order.
func (g *Graph) Plain(id ID) bool {
	base, l, ok := g.Seen(id)
	size, err := g.Nodes[base].Shape.Size()
	return ok && err == nil && l.BroadcastKind(size) == op.Full
}

// Base returns the node whose memory has the value of id: id itself, or the operand of a view.
func (g *Graph) Base(id ID) ID {
	for g.Nodes[id].View() {
		id = g.Nodes[id].In[0]
	}
	return id
}

// Producer returns the node whose step computes the value of id: id itself, or the node whose
// additional result id is.
func (g *Graph) Producer(id ID) ID {
	if n := &g.Nodes[id]; n.Kind == Result {
		return n.In[0]
	}
	return id
}

// Elementwise reports whether n can be an instruction of a fused program.
func (n *Node) Elementwise() bool { return n.Kind == Compute && n.Op.Class() == op.Elementwise }
