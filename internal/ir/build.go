package ir

import (
	"fmt"
	"math"
)

// NewArg returns operand i, an element of type t.
//
//go:noinline
func NewArg(i int, t Type) *Node { return &Node{Code: Arg, Type: t, Index: i} }

// NewParam returns scalar parameter i, a float32.
//
//go:noinline
func NewParam(i int) *Node { return &Node{Code: Param, Type: F32, Index: i} }

// NewConst returns the constant v of type t. A float is rounded to float32
// here, once, so that every back end sees the same number.
//
//go:noinline
func NewConst(v float64, t Type) *Node {
	if t == F32 {
		v = float64(float32(v))
	}
	return &Node{Code: Const, Type: t, Value: v}
}

// New returns the node that applies c to args. The result type follows from
// c and the operands; for Convert and Bitcast use [NewConvert] and
// [NewBitcast]. Operands that do not fit give an error, never a panic: they
// may come from a user's expression.
func New(c Code, args ...*Node) (*Node, error) {
	n := &Node{Code: c}
	if c < Add || c >= numCodes || c == Convert || c == Bitcast {
		return nil, fmt.Errorf("ir: %v is not built from operands alone", c)
	}
	info := &codes[c]
	if len(args) != info.arity {
		return nil, fmt.Errorf("ir: %v takes %d operands, not %d", c, info.arity, len(args))
	}
	for i, a := range args {
		if a == nil || a.Type == Invalid {
			return nil, fmt.Errorf("ir: operand %d of %v is missing", i, c)
		}
		n.Args[i] = a
		n.depth = max(n.depth, a.depth+1)
	}
	if n.depth > MaxDepth {
		return nil, fmt.Errorf("ir: expression deeper than %d", MaxDepth)
	}
	vals := args
	if c == Select {
		if args[0].Type != Bool {
			return nil, fmt.Errorf("ir: select needs a bool condition, not %v", args[0].Type)
		}
		vals = args[1:]
	}
	t := vals[0].Type
	for _, a := range vals {
		if a.Type != t {
			return nil, fmt.Errorf("ir: %v of %v and %v", c, t, a.Type)
		}
	}
	if !info.on.has(t) {
		return nil, fmt.Errorf("ir: %v is not defined for %v", c, t)
	}
	n.Type = t
	if c == Eq || c == Ne || c == Lt || c == Le {
		n.Type = Bool
	}
	return fold(n), nil
}

// NewConvert returns x converted to t by value.
func NewConvert(x *Node, t Type) *Node {
	if x.Type == t {
		return x
	}
	return fold(&Node{Code: Convert, Type: t, Args: [3]*Node{x}, depth: x.depth + 1})
}

// NewBitcast returns the bits of x as a t.
func NewBitcast(x *Node, t Type) *Node {
	if x.Type == t {
		return x
	}
	return fold(&Node{Code: Bitcast, Type: t, Args: [3]*Node{x}, depth: x.depth + 1})
}

// NewRound returns x, an F32, rounded by c: RoundF16 or RoundBF16.
func NewRound(c Code, x *Node) *Node {
	return fold(&Node{Code: c, Type: F32, Args: [3]*Node{x}, depth: x.depth + 1})
}

// fold replaces a node whose operands are all constant by its value. The
// arithmetic is done in float64 and rounded once to float32: with float32
// operands that is the correctly rounded result for + - * / and sqrt, and
// within half a unit of the last place for the functions.
func fold(n *Node) *Node {
	for _, a := range n.Operands() {
		if a.Code != Const {
			return n
		}
	}
	var v [3]float64
	for i, a := range n.Operands() {
		v[i] = a.Value
	}
	return NewConst(evalNode(n, v[0], v[1], v[2]), n.Type)
}

// Map returns the expression in which f has replaced every node, operands
// first: f gets each node once, its operands already replaced, and returns
// the node to use instead (or the same). Sharing is kept.
func Map(root *Node, f func(*Node) *Node) *Node {
	return mapFrom(root, func(_, n *Node) *Node { return f(n) })
}

// mapFrom is Map, where f also gets what the node was before its operands were
// replaced.
func mapFrom(root *Node, f func(was, n *Node) *Node) *Node {
	done := make(map[*Node]*Node)
	var walk func(*Node) *Node
	walk = func(n *Node) *Node {
		if m, ok := done[n]; ok {
			return m
		}
		m := n
		for i, a := range n.Operands() {
			if b := walk(a); b != a {
				if m == n {
					c := *n
					m = &c
				}
				m.Args[i] = b
			}
		}
		m = f(n, m)
		done[n] = m
		return m
	}
	return walk(root)
}

// Substitute returns root with operand i replaced by args[i] and parameter j
// by params[j]: how a chain of operations becomes one expression. A nil or
// missing entry leaves the operand or parameter as it is.
func Substitute(root *Node, args, params []*Node) *Node {
	return Map(root, func(n *Node) *Node {
		switch {
		case n.Code == Arg && n.Index < len(args) && args[n.Index] != nil:
			return args[n.Index]
		case n.Code == Param && n.Index < len(params) && params[n.Index] != nil:
			return params[n.Index]
		}
		return n
	})
}

// Retype returns root, written for F32 operands, as an expression over
// operands of type t, or an error if a code in it is not defined for t.
// Parameters and float constants must be integral.
func Retype(root *Node, t Type) (*Node, error) {
	if t == F32 {
		return root, nil
	}
	var first error
	out := Map(root, func(n *Node) *Node {
		if first != nil {
			return n
		}
		switch n.Code {
		case Arg:
			if n.Type != F32 {
				return n // a condition
			}
			return NewArg(n.Index, t)
		case Param:
			return NewConvert(n, t)
		case Const:
			if n.Type != F32 {
				return n
			}
			if n.Value != math.Trunc(n.Value) || math.IsInf(n.Value, 0) {
				first = fmt.Errorf("ir: constant %v is not a %v", n.Value, t)
				return n
			}
			return NewConst(n.Value, t)
		case Convert, Bitcast:
			first = fmt.Errorf("ir: %v in an expression that is retyped", n.Code)
			return n
		}
		m, err := New(n.Code, n.Operands()...)
		if err != nil {
			first = err
			return n
		}
		return m
	})
	return out, first
}
