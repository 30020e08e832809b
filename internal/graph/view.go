package graph

import "github.com/rayo-go/rayo/op"

// Reader reports whether a device reads operand at of operation o, a value of
// shape s, where a layout says that its elements are.
type Reader func(o *op.Operation, at int, s op.Shape, l *op.Layout) bool

// Views returns the pass that copies a view if its consumers cannot read its layout: outputs of the graph,
// operands of stores and launches, and operands for which reads returns false. A copy is a cast to the value's
// own type, so that it fuses like any elementwise operation; devices can copy every layout.
func Views(reads Reader) Pass {
	return Pass{"views", func(g *Graph) (*Graph, error) {
		v := viewer{reads: reads, copies: make(map[ID]ID)}
		out, err := g.rewrite(v.node)
		if err != nil {
			return nil, err
		}
		for i, o := range out.Outputs {
			if !out.Plain(o) {
				out.Outputs[i] = v.copied(out, o)
			}
		}
		return out, nil
	}}
}

type viewer struct {
	reads  Reader
	copies map[ID]ID // of views
}

// copied returns a contiguous, row-major copy of a value.
func (v *viewer) copied(out *Graph, id ID) ID {
	if c, ok := v.copies[id]; ok {
		return c
	}
	n := out.Nodes[id]
	c := out.Add(Node{Kind: Compute, Op: op.Cast, Attrs: op.CastTo(n.Type), Type: n.Type, Shape: n.Shape, NIn: 1, In: [MaxInputs]ID{id}})
	v.copies[id] = c
	return c
}

func (v *viewer) node(out *Graph, _ ID, n Node) (ID, error) {
	if n.View() {
		return v.view(out, n), nil
	}
	for i, id := range n.Inputs() {
		if id == Absent || !out.Nodes[id].View() || out.Plain(id) {
			continue
		}
		_, l, _ := out.Seen(id)
		x := &out.Nodes[id]
		read := false
		switch {
		case n.Elementwise():
			_, err := l.Over(x.Shape, n.Shape)
			read = err == nil && v.reads(n.Op, i, x.Shape, &l)
		case n.Kind == Compute:
			read = v.reads(n.Op, i, x.Shape, &l)
		}
		if !read {
			n.In[i] = v.copied(out, id)
		}
	}
	return out.Add(n), nil
}

// view adds a view with a layout, of a copy if necessary. A view that does not change the layout
// becomes its operand.
func (v *viewer) view(out *Graph, n Node) ID {
	if n.Op == op.Pad && empty(out.Nodes[n.In[0]].Shape) && !empty(n.Shape) {
		n = filled(out, n)
	}
	id := out.Add(n)
	base, _, ok := out.Seen(id)
	if ok && out.Plain(id) && n.Shape.Equal(out.Nodes[base].Shape) {
		return base
	}
	if !ok {
		// The copy must come before what looks at it.
		out.Nodes = out.Nodes[:id]
		n.In[0] = v.copied(out, n.In[0])
		id = out.Add(n)
	}
	return id
}

func empty(s op.Shape) bool {
	n, err := s.Size()
	return err == nil && n == 0
}

// filled returns the pad of an empty array as a broadcast constant: a kernel that reads padding
// also loads an element, and an empty array has none.
func filled(out *Graph, pad Node) Node {
	data := make([]byte, pad.Type.Size())
	pad.Type.PutFloat64(data, 0, float64(pad.Attrs.Float(0)))
	one := out.Add(Node{Kind: Constant, Type: pad.Type, Shape: op.Shape{}, Ref: int32(len(out.Data))})
	out.Data = append(out.Data[:len(out.Data):len(out.Data)], data)
	attrs, _ := op.ExpandTo(pad.Shape...) // at most MaxRank extents, all known
	return Node{Kind: Compute, Op: op.Expand, Attrs: attrs, Type: pad.Type, Shape: pad.Shape, NIn: 1, In: [MaxInputs]ID{one}}
}
