package graph

import (
	"slices"

	"github.com/rayo-go/rayo/op"
)

// Columns returns the pass that exchanges elementwise operations with the views that follow them, if a reduction reads columns
// through these views and the device can fuse a program into the reduction. Fuse does not fuse through views. For example,
// any(x != 0) over the first axis permutes the result of the comparison. After the pass it permutes x, and the result needs no
// memory.
func Columns(prologue func(*op.Operation) bool) Pass {
	return Pass{"columns", func(g *Graph) (*Graph, error) {
		c := columns{uses: g.useCounts(), written: g.written(), of: make(map[ID]ID)}
		found := false
		g, err := g.rewrite(func(out *Graph, old ID, n Node) (ID, error) {
			if x := n.In[0]; n.Kind == Compute && n.Op.Class() == op.Reduction && n.NIn == 1 && prologue(n.Op) && c.moves(out, x) {
				n.In[0] = c.moved(out, out.Base(x), c.views(out, x))
				found = true
			}
			id := out.Add(n)
			c.of[id] = old
			return id, nil
		})
		if err != nil || !found {
			return g, err
		}
		return DCE.Run(g)
	}}
}

type columns struct {
	uses    []int // number of uses of each node of the graph before the pass
	written map[int32]bool
	of      map[ID]ID // for a node of the new graph, the node before the pass
}

// moves reports whether x, an operand of a reduction, has the columns of the result of an elementwise operation that can move.
func (c *columns) moves(out *Graph, x ID) bool {
	if !out.Nodes[x].View() {
		return false
	}
	for v := x; out.Nodes[v].View(); v = out.Nodes[v].In[0] {
		if c.uses[c.of[v]] != 1 {
			return false
		}
	}
	base, l, ok := out.Seen(x)
	if !ok || !c.movable(out, base) {
		return false
	}
	_, _, ok = l.Columns(out.Nodes[x].Shape.Rows())
	return ok
}

// movable reports whether a node is an elementwise operation with one consumer, and whether its operands have the same values
// at the position of that consumer.
func (c *columns) movable(out *Graph, id ID) bool {
	n := &out.Nodes[id]
	old, ok := c.of[id]
	if !ok || !n.Elementwise() || out.copies(id) || c.uses[old] != 1 {
		return false
	}
	for _, in := range n.Inputs() {
		if in == Absent {
			continue
		}
		if b := &out.Nodes[out.Base(in)]; b.Kind == Resident && c.written[b.Ref] {
			return false
		}
		// The program reads all operands in the order of memory.
		if x := &out.Nodes[in]; x.View() && x.Op != op.Expand {
			return false
		}
	}
	return true
}

// views returns the views from the base of x to x.
func (c *columns) views(out *Graph, x ID) []Node {
	var vs []Node
	for ; out.Nodes[x].View(); x = out.Nodes[x].In[0] {
		vs = append(vs, out.Nodes[x])
	}
	slices.Reverse(vs)
	return vs
}

// moved adds the value of node id as the views show it: if the node is movable, the operation over views of its operands.
func (c *columns) moved(out *Graph, id ID, views []Node) ID {
	n := out.Nodes[id]
	if !c.movable(out, id) {
		for _, v := range views {
			v.In[0], v.Type = id, n.Type
			id = out.Add(v)
		}
		return id
	}
	for i, in := range n.Inputs() {
		if in == Absent || len(out.Nodes[in].Shape) == 0 { // a scalar is the same in every order
			continue
		}
		if x := &out.Nodes[in]; !x.Shape.Equal(n.Shape) {
			attrs, _ := op.ExpandTo(n.Shape...) // the operation has checked the shapes
			in = out.Add(Node{Kind: Compute, Op: op.Expand, Attrs: attrs, Type: x.Type, Shape: n.Shape, NIn: 1, In: [MaxInputs]ID{in}})
		}
		n.In[i] = c.moved(out, in, views)
	}
	n.Shape = views[len(views)-1].Shape
	return out.Add(n)
}
