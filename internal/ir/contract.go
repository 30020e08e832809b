package ir

// Contract returns the expressions in which a sum of a product and another value is one Fma, which
// rounds once instead of twice: its result lies between the results that the product and the sum
// can give when each is rounded up or down. Contract does not change a product that has another
// use. It does not change sums of two products either, because it would round only one of the two:
// a·a - b·b must be 0 if a is b.
//
// Call Contract before [Lower]. The expansions contain arithmetic that compensates for roundings,
// which Contract would remove.
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
	// Equal products are merged to one product with several uses. Flatten may repeat the last root,
	// so a constant is added as the last root.
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

// negated returns -x if minus is set, and otherwise x. It keeps the depth of x, because the depth
// of the parent is kept too.
func negated(x *Node, minus bool) *Node {
	if !minus {
		return x
	}
	return fold(&Node{Code: Neg, Type: x.Type, Args: [3]*Node{x}, depth: x.depth})
}
