package ir

import (
	"math"
	"strings"

	"github.com/rayo-go/rayo/internal/fmt"
)

// Flatten returns the nodes of the expressions in an order in which operands come before their
// users. Nodes that compute the same value from the same operands are merged. The last entry is the
// last root, and at[i] is the index of roots[i]. The operands of the returned nodes are entries of
// the list.
func Flatten(roots ...*Node) (list []*Node, at []int) {
	seen := make(map[*Node]*Node)
	same := make(map[identity]*Node)
	place := make(map[*Node]int)
	var walk func(*Node) *Node
	walk = func(n *Node) *Node {
		if m, ok := seen[n]; ok {
			return m
		}
		m := *n
		for i, a := range n.Operands() {
			m.Args[i] = walk(a)
		}
		key := identity{m.Code, m.Type, m.Index, math.Float64bits(m.Value), m.Args}
		if m.Code.Commutes() && place[m.Args[1]] < place[m.Args[0]] {
			key.args[0], key.args[1] = key.args[1], key.args[0]
		}
		c, ok := same[key]
		if !ok {
			c = &m
			same[key] = c
			place[c] = len(list)
			list = append(list, c)
		}
		seen[n] = c
		return c
	}
	for _, r := range roots {
		at = append(at, place[walk(r)])
	}
	if len(at) > 0 && at[len(at)-1] != len(list)-1 {
		// The last root is also part of another root. It gets another entry at the end of the list,
		// because the last entry must be the last root.
		last := *list[at[len(at)-1]]
		list = append(list, &last)
		at[len(at)-1] = len(list) - 1
	}
	return list, at
}

// identity is the key of a node: nodes with equal keys compute the same value.
type identity struct {
	code  Code
	typ   Type
	index int
	bits  uint64
	args  [3]*Node
}

// Key returns the same text for two expressions exactly if they compute the same value in the same
// way. Plans and kernels are cached under it.
func Key(roots ...*Node) string {
	list, at := Flatten(roots...)
	var b strings.Builder
	place := make(map[*Node]int, len(list))
	for i, n := range list {
		place[n] = i
		b.WriteString(n.Code.String())
		switch n.Code {
		case Arg:
			fmt.Fprintf(&b, ".%v%d", n.Type, n.Index)
		case Param:
			fmt.Fprintf(&b, "%d", n.Index)
		case Const:
			fmt.Fprintf(&b, ".%v:%x", n.Type, math.Float64bits(n.Value))
		case Convert, Bitcast:
			fmt.Fprintf(&b, ".%v", n.Type)
		}
		for _, a := range n.Operands() {
			fmt.Fprintf(&b, " %d", place[a])
		}
		b.WriteByte(';')
	}
	fmt.Fprintf(&b, "%v", at)
	return b.String()
}

// infix are the operators of listings.
var infix = map[Code]string{Add: " + ", Sub: " - ", Mul: " * ", Div: " / ", Eq: " == ", Ne: " != ",
	Lt: " < ", Le: " <= ", And: " & ", Or: " | ", Xor: " ^ ", Shl: " << ", Shr: " >> ", IDiv: " / ", IMod: " % "}

// Format returns an expression as a formula. Operands are x0, x1 … and parameters p0, p1 …, unless
// args and params give names. Shared values are written out at each use, so a long formula is cut
// with an ellipsis.
func Format(n *Node, args, params []string) string {
	name := func(names []string, i int, prefix string) string {
		if i < len(names) && names[i] != "" {
			return names[i]
		}
		return fmt.Sprintf("%s%d", prefix, i)
	}
	left := 500 // number of nodes that may still be written
	var walk func(n *Node, nested bool) string
	walk = func(n *Node, nested bool) string {
		if left--; left < 0 {
			return "…"
		}
		switch n.Code {
		case Arg:
			return name(args, n.Index, "x")
		case Param:
			return name(params, n.Index, "p")
		case Const:
			if n.Type == F32 {
				return fmt.Sprint(float32(n.Value))
			}
			return fmt.Sprint(int64(n.Value))
		case Neg:
			return "-" + walk(n.Args[0], true)
		}
		if s, ok := infix[n.Code]; ok {
			t := walk(n.Args[0], true) + s + walk(n.Args[1], true)
			if nested {
				t = "(" + t + ")"
			}
			return t
		}
		f := n.Code.String()
		switch n.Code {
		case Convert:
			f = n.Type.String()
		case Bitcast:
			f += "<" + n.Type.String() + ">"
		}
		var as []string
		for _, a := range n.Operands() {
			as = append(as, walk(a, false))
		}
		return f + "(" + strings.Join(as, ", ") + ")"
	}
	return walk(n, false)
}
