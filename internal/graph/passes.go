package graph

import (
	"github.com/rayo-go/rayo/op"
)

// Simplify removes operations that have no effect. It uses only identities that hold for every
// value, including NaN and signed zeros.
var Simplify = Pass{"simplify", func(g *Graph) (*Graph, error) {
	return g.rewrite(func(out *Graph, _ ID, n Node) (ID, error) {
		if n.Kind != Compute {
			return out.Add(n), nil
		}
		x := n.In[0]
		arg := &out.Nodes[x]
		inner := func(o *op.Operation) bool { return arg.Kind == Compute && arg.Op == o }
		switch n.Op {
		case op.Scale:
			if n.Attrs.Float(0) == 1 {
				return x, nil
			}
		case op.Cast:
			if arg.Type == n.Type {
				return x, nil
			}
		case op.Neg:
			if inner(op.Neg) {
				return arg.In[0], nil
			}
		case op.Relu, op.Abs, op.Floor, op.Ceil, op.Round, op.Trunc:
			if inner(n.Op) {
				return x, nil
			}
		case op.Transpose:
			if inner(op.Transpose) {
				return arg.In[0], nil
			}
		case op.Reshape:
			if n.Shape.Equal(arg.Shape) {
				return x, nil
			}
			if inner(op.Reshape) {
				n.In[0] = arg.In[0]
			}
		}
		return out.Add(n), nil
	})
}}

// maxFold limits the elements of values that are computed at planning time.
const maxFold = 4096

// Fold computes what depends on constants alone.
var Fold = Pass{"fold", func(g *Graph) (*Graph, error) {
	return g.rewrite(func(out *Graph, _ ID, n Node) (ID, error) {
		if n.Kind == Compute && n.Op.Results() == 1 && n.foldable(out) {
			if data, err := n.eval(out); err == nil {
				n = Node{Kind: Constant, Type: n.Type, Shape: n.Shape, Ref: int32(len(out.Data))}
				// The list of contents is shared with the graph that came in:
				// append to a copy.
				out.Data = append(out.Data[:len(out.Data):len(out.Data)], data)
			}
		}
		return out.Add(n), nil
	})
}}

func (n *Node) foldable(g *Graph) bool {
	small := func(s op.Shape) bool {
		k, err := s.Size()
		return err == nil && k <= maxFold
	}
	for _, in := range n.Inputs() {
		if in != Absent && (g.Nodes[in].Kind != Constant || !small(g.Nodes[in].Shape)) {
			return false
		}
	}
	return n.NIn > 0 && small(n.Shape)
}

func (n *Node) eval(g *Graph) ([]byte, error) {
	in := make([]*op.Array, n.NIn)
	types := make([]op.DType, n.NIn)
	for i, id := range n.Inputs() {
		if id == Absent {
			continue
		}
		a := &g.Nodes[id]
		types[i] = a.Type
		in[i] = op.NewArray(a.Shape)
		for j := range in[i].Data {
			in[i].Data[j] = a.Type.Float64(g.Data[a.Ref], j)
		}
	}
	res, err := n.Op.Reference(&n.Attrs, in, types)
	if err != nil {
		return nil, err
	}
	data := make([]byte, len(res[0].Data)*n.Type.Size())
	for j, v := range res[0].Data {
		n.Type.PutFloat64(data, j, v)
	}
	return data, nil
}

// CSE merges nodes that compute the same: the same operation with the same
// parameters on the same operands in the same order. Operands of an operation
// that commutes may be swapped.
var CSE = Pass{"cse", func(g *Graph) (*Graph, error) {
	type identity struct {
		kind  Kind
		typ   op.DType
		ref   int32
		op    string
		attrs op.Attrs
		nin   uint8
		in    [MaxInputs]ID // 0 beyond nin, which is also the first node
		off   int64
		epoch int
		shape string
	}
	written := g.written()
	epoch := 0
	seen := make(map[identity]ID)
	return g.rewrite(func(out *Graph, _ ID, n Node) (ID, error) {
		key := identity{kind: n.Kind, typ: n.Type, ref: n.Ref, attrs: n.Attrs, nin: n.NIn, in: n.In, off: n.Off}
		switch n.Kind {
		case Store:
			epoch++
			return out.Add(n), nil
		case Launch:
			return out.Add(n), nil // atomics on floats need not agree twice
		case Input, Constant:
			key.shape = n.Shape.String()
		case Resident:
			key.shape = n.Shape.String()
			if written[n.Ref] {
				key.epoch = epoch // its contents depend on the position of the read
			}
		case Compute:
			key.op = n.Op.Key()
			if n.Op == op.Reshape {
				key.shape = n.Shape.String()
			}
			if n.Op.Commutes() && key.in[1] < key.in[0] {
				key.in[0], key.in[1] = key.in[1], key.in[0]
			}
		}
		if id, ok := seen[key]; ok {
			return id, nil
		}
		id := out.Add(n)
		seen[key] = id
		return id, nil
	})
}}

// written returns the references that the graph writes.
func (g *Graph) written() map[int32]bool {
	s := make(map[int32]bool)
	for i := range g.Nodes {
		if g.Nodes[i].Kind == Store {
			s[g.Nodes[i].Ref] = true
		}
	}
	return s
}

// DCE removes nodes that no output and no store needs.
var DCE = Pass{"dce", func(g *Graph) (*Graph, error) {
	live := make([]bool, len(g.Nodes))
	for _, o := range g.Outputs {
		live[o] = true
	}
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := &g.Nodes[i]
		if n.Kind == Store {
			live[i] = true
		}
		if live[i] {
			for _, in := range n.Inputs() {
				if in != Absent {
					live[in] = true
				}
			}
		}
	}
	return g.rewrite(func(out *Graph, old ID, n Node) (ID, error) {
		if !live[old] {
			return Absent, nil
		}
		return out.Add(n), nil
	})
}}

// Snapshot copies device memory that is read after a later store has changed it: a value is the
// contents of the memory at the point where the value was recorded.
var Snapshot = Pass{"snapshot", func(g *Graph) (*Graph, error) {
	last := make(map[ID]int) // the last place at which each resident is read
	use := func(id ID, at int) {
		if id != Absent && g.Nodes[g.Base(id)].Kind == Resident {
			last[g.Base(id)] = at
		}
	}
	for i := range g.Nodes {
		for _, in := range g.Nodes[i].Inputs() {
			use(in, i)
		}
	}
	for _, o := range g.Outputs {
		use(o, len(g.Nodes))
	}
	copied := make(map[ID]bool)
	for i := range g.Nodes {
		if s := &g.Nodes[i]; s.Kind == Store {
			for id, at := range last {
				if g.Nodes[id].Ref == s.Ref && int(id) < i && at > i {
					copied[id] = true
				}
			}
		}
	}
	if len(copied) == 0 {
		return g, nil
	}
	return g.rewrite(func(out *Graph, old ID, n Node) (ID, error) {
		id := out.Add(n)
		if copied[old] {
			id = out.Add(Node{Kind: Compute, Op: op.Cast, Attrs: op.CastTo(n.Type), Type: n.Type, Shape: n.Shape,
				NIn: 1, In: [MaxInputs]ID{id}})
		}
		return id, nil
	})
}}
