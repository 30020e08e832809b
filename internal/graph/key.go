package graph

import "hash/maphash"

var seed = maphash.MakeSeed()

// Hash returns a number that equal graphs share.
func (g *Graph) Hash() uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	word := func(v uint64) {
		var b [8]byte
		for i := range b {
			b[i] = byte(v >> (8 * i))
		}
		h.Write(b[:])
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		word(uint64(n.Kind) | uint64(n.Type)<<8 | uint64(n.NIn)<<16 | uint64(uint32(n.Ref))<<32)
		for _, in := range n.Inputs() {
			word(uint64(in))
		}
		if n.Op != nil {
			h.WriteString(n.Op.Key())
			word(uint64(n.Attrs.F[0]) | uint64(n.Attrs.F[1])<<32)
			word(uint64(n.Attrs.I[0])<<32 | uint64(uint32(n.Attrs.I[1])))
		}
		word(uint64(n.Off))
		for _, d := range n.Shape {
			word(uint64(d))
		}
	}
	for _, o := range g.Outputs {
		word(uint64(o))
	}
	for _, d := range g.Data {
		h.Write(d)
	}
	for _, k := range g.Launches {
		h.WriteString(k.Program.Name)
		word(uint64(len(k.Program.Code)))
		word(uint64(k.Grid[0]) | uint64(k.Grid[1])<<32)
	}
	return h.Sum64()
}

// Equal reports whether g and o describe the same work.
func (g *Graph) Equal(o *Graph) bool {
	if len(g.Nodes) != len(o.Nodes) || len(g.Outputs) != len(o.Outputs) || len(g.Data) != len(o.Data) || len(g.Launches) != len(o.Launches) {
		return false
	}
	for i := range g.Nodes {
		a, b := &g.Nodes[i], &o.Nodes[i]
		if a.Kind != b.Kind || a.Type != b.Type || a.NIn != b.NIn || a.Ref != b.Ref || a.In != b.In || a.Off != b.Off ||
			!sameOp(a, b) || !a.Shape.Equal(b.Shape) {
			return false
		}
	}
	for i := range g.Outputs {
		if g.Outputs[i] != o.Outputs[i] {
			return false
		}
	}
	for i := range g.Launches {
		if !g.Launches[i].equal(o.Launches[i]) {
			return false
		}
	}
	for i := range g.Data {
		if string(g.Data[i]) != string(o.Data[i]) {
			return false
		}
	}
	return true
}

func sameOp(a, b *Node) bool {
	if a.Op != b.Op && (a.Op == nil || b.Op == nil || a.Op.Key() != b.Op.Key()) {
		return false
	}
	if a.Attrs.Act != b.Attrs.Act && a.Attrs.Act != nil && b.Attrs.Act != nil && a.Attrs.Act.Key() == b.Attrs.Act.Key() {
		x := a.Attrs
		x.Act = b.Attrs.Act
		return x == b.Attrs
	}
	return a.Attrs == b.Attrs
}

// Clone returns a copy that shares no memory with the recorder.
func (g *Graph) Clone() *Graph {
	c := &Graph{Nodes: append([]Node(nil), g.Nodes...), Outputs: append([]ID(nil), g.Outputs...), Data: append([][]byte(nil), g.Data...),
		Launches: append([]*Kernel(nil), g.Launches...)}
	for i := range c.Nodes {
		c.Nodes[i].Shape = append(c.Nodes[i].Shape[:0:0], c.Nodes[i].Shape...)
	}
	return c
}
