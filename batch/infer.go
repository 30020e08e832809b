package batch

import (
	"fmt"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/graph"
	"github.com/rayo-go/rayo/op"
)

// inferred is a cached result of an operation's rules. Models apply the same operations to the same
// shapes repeatedly, and calling the rules allocates.
type inferred struct {
	op     *op.Operation
	attrs  op.Attrs
	n      uint8
	types  [op.MaxInputs]op.DType
	shapes [op.MaxInputs]op.Shape
	typ    op.DType
	shape  op.Shape
}

// memo is a direct-mapped cache of inferred results.
type memo [64]inferred

// infer sets the type and shape of the first result of n according to the operation's rules.
func (b *Batch) infer(n *graph.Node) error {
	var types [op.MaxInputs]op.DType
	var shapes [op.MaxInputs]op.Shape
	h := uint(n.Op.ID())
	for i, id := range n.Inputs() {
		if id != graph.Absent {
			x := &b.g.Nodes[id]
			types[i], shapes[i] = x.Type, x.Shape
			for _, d := range x.Shape {
				h = h*31 + uint(d)
			}
		}
	}
	k := &b.memo[h%uint(len(b.memo))]
	if k.op == n.Op && k.n == n.NIn && k.types == types && k.attrs == n.Attrs && sameShapes(&k.shapes, &shapes) {
		n.Type, n.Shape = k.typ, k.shape
		return nil
	}
	t, s, err := b.rules(n.Op, n.Attrs, n.NIn, types, shapes)
	if err != nil {
		return err
	}
	if len(s[0]) > b.eng.Limits().MaxRank {
		return fmt.Errorf("the shape has %d extents: at most %d are supported: %w", len(s[0]), b.eng.Limits().MaxRank, device.ErrLimit)
	}
	n.Type, n.Shape = t[0], s[0]
	*k = inferred{n.Op, n.Attrs, n.NIn, types, shapes, t[0], s[0]}
	return nil
}

func sameShapes(a, b *[op.MaxInputs]op.Shape) bool {
	for i := range a {
		if (a[i] == nil) != (b[i] == nil) || !a[i].Equal(b[i]) {
			return false
		}
	}
	return true
}

// rules calls the operation's shape rule. It copies the parameters, so that infer's own stay on the
// stack.
func (b *Batch) rules(o *op.Operation, a op.Attrs, n uint8, types [op.MaxInputs]op.DType, shapes [op.MaxInputs]op.Shape) ([]op.DType, []op.Shape, error) {
	t, err := o.Types(&a, types[:n])
	if err != nil {
		return nil, nil, err
	}
	s, err := o.Shapes(&a, shapes[:n])
	return t, s, err
}

// second records the second result of the operation whose first result is v.
func (b *Batch) second(v Value) Value { return b.result(v, 1) }

// result records result k (1 or more) of the operation whose first result is v.
func (b *Batch) result(v Value, k int) Value {
	if b.err != nil {
		return Value{}
	}
	n := &b.g.Nodes[v.id]
	var types [op.MaxInputs]op.DType
	var shapes [op.MaxInputs]op.Shape
	for i, id := range n.Inputs() {
		types[i], shapes[i] = b.g.Nodes[id].Type, b.g.Nodes[id].Shape
	}
	t, s, err := b.rules(n.Op, n.Attrs, n.NIn, types, shapes)
	if err != nil {
		return b.failOp(n.Op, err, nil)
	}
	r := graph.Node{Kind: graph.Result, Ref: int32(k), Type: t[k], Shape: s[k], NIn: 1}
	r.In[0] = v.id
	return b.add(&r)
}
