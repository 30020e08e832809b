package graph

import "github.com/rayo-go/rayo/op"

// Products replaces the sum of a product of two float32 arrays by a dot product, which needs no memory for the product. Both
// have the tolerance of a sum in float32, so a device may round the products or not. The pass must run before Snapshot,
// because the dot product reads the arrays later than the product did.
var Products = Pass{"products", func(g *Graph) (*Graph, error) {
	uses := g.useCounts()
	found := false
	made := make(map[ID]ID) // for a node of the new graph, the node of g
	g, err := g.rewrite(func(out *Graph, old ID, n Node) (ID, error) {
		if n.Kind == Compute && n.Op == op.Sum && n.Type == op.F32 {
			x := &out.Nodes[n.In[0]]
			if was, ok := made[n.In[0]]; ok && uses[was] == 1 && out.dots(x) {
				n.Op, n.NIn, n.In = op.Dot, 2, x.In
				found = true
			}
		}
		id := out.Add(n)
		made[id] = old
		return id, nil
	})
	if err != nil || !found {
		return g, err
	}
	return DCE.Run(g)
}}

// dots reports whether a node is the product of two arrays that have its shape and are not views.
func (g *Graph) dots(n *Node) bool {
	if n.Kind != Compute || n.Op != op.Mul {
		return false
	}
	for _, in := range n.Inputs() {
		x := &g.Nodes[in]
		if x.View() || x.Type != op.F32 || !x.Shape.Equal(n.Shape) {
			return false
		}
	}
	return true
}

// useCounts returns for each node the number of operands and outputs that refer to it.
func (g *Graph) useCounts() []int {
	uses := make([]int, len(g.Nodes))
	for i := range g.Nodes {
		for _, in := range g.Nodes[i].Inputs() {
			if in != Absent {
				uses[in]++
			}
		}
	}
	for _, o := range g.Outputs {
		uses[o]++
	}
	return uses
}
