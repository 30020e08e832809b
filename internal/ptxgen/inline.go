package ptxgen

import (
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/ptx"
)

// Expressions are elementwise expressions on values of kernels that are written with package ptx,
// for example an activation of a product. They are lowered by the same code as programs.
type Expressions struct {
	list []*ir.Node
	at   []int
}

// NewExpressions returns the expressions with the given roots. They may use operands (Arg), but not
// parameters (Param).
func NewExpressions(roots ...*ir.Node) *Expressions {
	lowered := make([]*ir.Node, len(roots))
	for i, r := range roots {
		lowered[i] = ir.Lower(r, native)
	}
	x := &Expressions{}
	x.list, x.at = ir.Flatten(lowered...)
	return x
}

// Len returns the number of values that the expressions compute.
func (x *Expressions) Len() int {
	n := 0
	for _, v := range x.list {
		if v.Code != ir.Arg && v.Code != ir.Const {
			n++
		}
	}
	return n
}

// Inline writes the instructions that compute the expressions where the kernel is being built, and
// returns the values. Operand i is args[i]. The expressions define the types: each value is the
// handle of its type, F32, S32, U32 or Pred, as a U32.
func (x *Expressions) Inline(k *ptx.Kernel, args ...ptx.U32) []ptx.U32 {
	g := &lowering{k: k, target: k.Target()}
	values := g.expressions(x.list, args)
	out := make([]ptx.U32, len(x.at))
	for i, at := range x.at {
		out[i] = values[at]
	}
	return out
}

// expressions computes the nodes of a list from ir.Flatten.
func (g *lowering) expressions(list []*ir.Node, args []ptx.U32) []ptx.U32 {
	values := make([]ptx.U32, len(list))
	at := make(map[*ir.Node]int, len(list))
	for i, n := range list {
		at[n] = i
		var a [3]ptx.U32
		for k, o := range n.Operands() {
			a[k] = values[at[o]]
		}
		switch n.Code {
		case ir.Arg:
			values[i] = args[n.Index]
		case ir.Const:
			values[i] = constant(&ir.Instr{Type: n.Type, Imm: n.Bits()})
		case ir.Select:
			values[i] = g.choose(n.Type, a[0], a[1], a[2])
		case ir.Convert:
			values[i] = g.convert(n.Args[0].Type, n.Type, a[0])
		case ir.Bitcast:
			values[i] = bitcast(n.Args[0].Type, n.Type, a[0])
		case ir.Sin, ir.Cos:
			values[i] = g.sine(n.Code, a[0])
		default:
			values[i] = operations(n.Code, n.Args[0].Type)(g, a[0], a[1], a[2])
		}
	}
	return values
}
