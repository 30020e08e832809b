package ir

// Contract returns the expressions with products that are added to something as
// one Fma, which rounds once instead of twice: its result lies between the results
// that the product and the sum can give when each is rounded up or down. Contract
// does not change a product that has another use. It does not change sums of two products
// either, because it would round only one of the two: a·a - b·b must be 0 where a is b.
//
// Codes that [Lower] expands must not have been expanded yet: their arithmetic makes
// up for roundings that would not be there.
func Contract(roots ...*Node) []*Node {
	uses := make(map[*Node]int)
	var count func(n *Node)
	count = func(n *Node) {
		if uses[n]++; uses[n] == 1 {
			for _, a := range n.Operands() {
				count(a)
			}
		}
	}
	// The same product twice is one with two uses. The last of the list, which may
	// be there for a second time, is not one of the roots.
	list, at := Flatten(append(roots[:len(roots):len(roots)], NewConst(0, Bool))...)
	out := make([]*Node, len(roots))
	for i := range out {
		out[i] = list[at[i]]
		count(out[i])
	}
	product := func(n *Node) bool { return n.Code == Mul && n.Type == F32 && uses[n] == 1 }
	done := make(map[*Node]*Node)
	var walk func(n *Node) *Node
	walk = func(n *Node) *Node {
		if m, ok := done[n]; ok {
			return m
		}
		m := *n
		x, y := n.Args[0], n.Args[1]
		if (n.Code == Add || n.Code == Sub) && product(x) != product(y) {
			m.Code = Fma
			minus := n.Code == Sub
			if product(x) {
				m.Args = [3]*Node{walk(x.Args[0]), walk(x.Args[1]), negated(walk(y), minus)}
			} else {
				m.Args = [3]*Node{negated(walk(y.Args[0]), minus), walk(y.Args[1]), walk(x)}
			}
		} else {
			for i, a := range n.Operands() {
				m.Args[i] = walk(a)
			}
		}
		done[n] = &m
		return &m
	}
	for i := range out {
		out[i] = walk(out[i])
	}
	return out
}

// negated returns -x, or x unless minus is set. It keeps the depth of x,
// because the depth of the parent is kept too.
func negated(x *Node, minus bool) *Node {
	if !minus {
		return x
	}
	return fold(&Node{Code: Neg, Type: x.Type, Args: [3]*Node{x}, depth: x.depth})
}
