package ir

import (
	"math"

	"github.com/rayo-go/rayo/internal/fmt"
)

// NewArg returns operand i of the operation, an element of type t.
//
//go:noinline
func NewArg(i int, t Type) *Node { return &Node{Code: Arg, Type: t, Index: i} }

// NewParam returns scalar parameter i, a float32.
//
//go:noinline
func NewParam(i int) *Node { return &Node{Code: Param, Type: F32, Index: i} }

// NewConst returns the constant v of type t. A float is rounded to float32 here, so that every back
// end uses the same number.
//
//go:noinline
func NewConst(v float64, t Type) *Node {
	if t == F32 {
		v = float64(float32(v))
	}
	return &Node{Code: Const, Type: t, Value: v}
}

// New returns the node that applies c to args. The result type follows from c and the operands; for
// Convert and Bitcast use [NewConvert] and [NewBitcast]. Invalid operands give an error and never a
// panic, because they may come from a user's expression.
func New(c Code, args ...*Node) (*Node, error) {
	n := &Node{Code: c}
	if c < Add || c >= numCodes || c == Convert || c == Bitcast {
		return nil, fmt.Errorf("ir: New cannot make %v: use its own constructor", c)
	}
	info := &codes[c]
	if len(args) != info.arity {
		return nil, fmt.Errorf("ir: %v takes %d operands, but got %d", c, info.arity, len(args))
	}
	for i, a := range args {
		if a == nil || a.Type == Invalid {
			return nil, fmt.Errorf("ir: operand %d of %v is missing", i, c)
		}
		n.Args[i] = a
		n.depth = max(n.depth, a.depth+1)
	}
	if n.depth > MaxDepth {
		return nil, fmt.Errorf("ir: the expression is nested deeper than %d levels", MaxDepth)
	}
	vals := args
	if c == Select {
		if args[0].Type != Bool {
			return nil, fmt.Errorf("ir: the condition of select has type %v; it must be a bool", args[0].Type)
		}
		vals = args[1:]
	}
	t := vals[0].Type
	for _, a := range vals {
		if a.Type != t {
			return nil, fmt.Errorf("ir: the operands of %v have different types: %v and %v", c, t, a.Type)
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

// NewBitcast returns the value of type t that has the bits of x.
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

// fold replaces a node with constant operands by its value. It computes in float64 and rounds once
// to float32. For float32 operands the result is correctly rounded for + - * / and sqrt, and within
// half a unit in the last place for the functions.
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

// Map returns the expression in which f has replaced every node. It calls f once for each node,
// after it has replaced the node's operands. f returns the node to use instead, or the same node.
// Shared nodes stay shared.
func Map(root *Node, f func(*Node) *Node) *Node {
	return mapFrom(root, func(_, n *Node) *Node { return f(n) })
}

// mapFrom is Map, but f also gets the original node, whose operands are not replaced.
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

// Substitute returns root with operand i replaced by args[i], and parameter j by params[j]. It
// combines a chain of operations to one expression. A nil or missing entry leaves the operand or
// parameter as it is.
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

// Retype converts root, an expression over F32 operands, to an expression over operands of type t.
// It returns an error if a code of root is not defined for t. Parameters and float constants must
// be integral.
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
				first = fmt.Errorf("ir: constant %v is not a value of type %v", n.Value, t)
				return n
			}
			return NewConst(n.Value, t)
		case Convert, Bitcast:
			first = fmt.Errorf("ir: an expression with %v cannot be retyped", n.Code)
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
