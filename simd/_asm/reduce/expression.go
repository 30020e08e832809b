package main

import (
	"fmt"
	"math"

	"github.com/rayo-go/rayo/internal/ir"
)

// expression is a lowered expression over one operand, ready to be written.
type expression struct {
	nodes []*ir.Node
	last  map[*ir.Node]int // index of the last use of each node
}

// lower prepares root for the machine. The operands of its functions are in the range in which the
// functions are finite and not 0, so no clamps are needed.
func (k *writer) lower(root *ir.Node) *expression {
	root = ir.Map(ir.Lower(root, k.native), func(n *ir.Node) *ir.Node {
		if n.Code == ir.Max || n.Code == ir.Min {
			if n.Args[1].Code != ir.Const {
				panic("max of variables")
			}
			return n.Args[0]
		}
		return n
	})
	nodes, _ := ir.Flatten(root)
	e := &expression{nodes: nodes, last: map[*ir.Node]int{}}
	for i, n := range nodes {
		for _, a := range n.Operands() {
			e.last[a] = i
		}
	}
	e.last[nodes[len(nodes)-1]] = len(nodes)
	return e
}

// pin loads or allocates the constants of e.
func (k *writer) pin(e *expression) {
	for _, n := range e.nodes {
		if n.Code == ir.Const && !e.count(n) {
			k.pinned(constBits(n))
		}
	}
}

// count reports whether n is used only as a shift count.
func (e *expression) count(n *ir.Node) bool {
	for _, m := range e.nodes {
		for i, a := range m.Operands() {
			if a == n && !(m.Code == ir.Shl && i == 1) {
				return false
			}
		}
	}
	return true
}

func constBits(n *ir.Node) uint32 {
	if n.Type == ir.F32 {
		return math.Float32bits(float32(n.Value))
	}
	return uint32(int64(n.Value))
}

// apply replaces each of xs by the expression of it. It interleaves the instructions of the
// operands to hide their latency.
func (k *writer) apply(e *expression, xs []vec) {
	where := make([]map[*ir.Node]vec, len(xs))
	for u := range xs {
		where[u] = map[*ir.Node]vec{}
	}
	for i, n := range e.nodes {
		for u := range xs {
			w := where[u]
			switch n.Code {
			case ir.Arg:
				w[n] = xs[u]
				continue
			case ir.Const:
				if !e.count(n) {
					w[n] = k.pinned(constBits(n))
				}
				continue
			case ir.Bitcast:
				// The register is reused for the result.
				w[n] = w[n.Args[0]]
				if e.last[n.Args[0]] > i {
					panic("bitcast of a value that is used later")
				}
				continue
			}
			// The result reuses the register of an operand at its last use; an addend is preferred,
			// because FMA overwrites it.
			dst := none
			var a [3]vec
			for j := len(n.Operands()) - 1; j >= 0; j-- {
				o := n.Args[j]
				a[j] = w[o]
				serves := n.Code != ir.Fma || j == 2 || !k.addendOnly()
				serves = serves && o.Type != ir.Bool && n.Type != ir.Bool
				if e.last[o] == i && o.Code != ir.Const && dst == none && serves {
					dst = a[j]
				}
			}
			switch {
			case n.Type == ir.Bool:
				dst = k.condition()
			case dst == none:
				dst = k.vec()
			}
			k.instruction(n, dst, a)
			for j, o := range n.Operands() {
				if e.last[o] == i && o.Code != ir.Const && a[j] != dst {
					k.free(a[j])
				}
			}
			w[n] = dst
		}
	}
	for u := range xs {
		xs[u] = where[u][e.nodes[len(e.nodes)-1]]
	}
}

// instruction writes one node.
func (k *writer) instruction(n *ir.Node, dst vec, a [3]vec) {
	constant := func(i int) bool { return n.Args[i].Code == ir.Const }
	switch n.Code {
	case ir.Add, ir.Mul:
		if constant(0) {
			a[0], a[1] = a[1], a[0]
		}
		switch {
		case n.Code == ir.Mul:
			k.mul(dst, a[0], a[1])
		case n.Type == ir.F32:
			k.add(dst, a[0], a[1])
		default:
			k.addBits(dst, a[0], a[1])
		}
	case ir.Sub:
		k.sub(dst, a[0], a[1])
	case ir.Fma:
		k.fma3(dst, a[0], a[1], a[2])
	case ir.Ldexp:
		k.ldexp(dst, a[0], a[1])
	case ir.Lt:
		k.less(dst, a[0], a[1])
	case ir.Select:
		k.choose(dst, a[0], a[1], a[2])
	case ir.Shl:
		k.shiftBits(dst, a[0], int(n.Args[1].Value))
	default:
		panic(fmt.Sprintf("no instruction for %v", n.Code))
	}
}
