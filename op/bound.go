package op

import (
	"math"

	"github.com/rayo-go/rayo/internal/ir"
)

// bounder computes how far a float32 evaluation of an expression may be from
// its float64 value: the tolerance of a user's operation, for which nobody
// has stated one. Each step adds its own error to what it makes of those of
// its operands, which is found by moving the operands.
type bounder struct {
	list   []*ir.Node
	places [][3]int
	steps  []*ir.Evaluator // of one node over its operands
	values []float64
	errors []float64
}

// compositeULP bounds the error of the functions that expressions are made
// of, in units of the result, and basicULP that of arithmetic.
const (
	compositeULP = 4
	basicULP     = 0.5
)

func newBounder(root *ir.Node) *bounder {
	list, _ := ir.Flatten(root)
	n := len(list)
	b := &bounder{list, make([][3]int, n), make([]*ir.Evaluator, n), make([]float64, n), make([]float64, n)}
	at := make(map[*ir.Node]int, n)
	for i, node := range list {
		at[node] = i
		single := *node
		for j, a := range node.Operands() {
			b.places[i][j] = at[a]
			single.Args[j] = ir.NewArg(j, a.Type)
		}
		if node.Code.Arity() > 0 {
			b.steps[i] = ir.NewEvaluator(&single)
		}
	}
	return b
}

// bound returns the error bound at the given operands.
func (b *bounder) bound(args, params []float64) float64 {
	var at [3]float64
	for i, n := range b.list {
		e := 0.0
		switch n.Code {
		case ir.Arg:
			b.values[i] = args[n.Index]
		case ir.Param:
			b.values[i] = params[n.Index]
		case ir.Const:
			b.values[i] = n.Value
		default:
			k := n.Code.Arity()
			for j := range k {
				at[j] = b.values[b.places[i][j]]
			}
			v := b.steps[i].Eval(at[:], nil)
			for j := range k {
				p := b.places[i][j]
				if b.errors[p] == 0 {
					continue
				}
				moved := 0.0
				for _, d := range [...]float64{-b.errors[p], b.errors[p]} {
					at[j] = b.values[p] + d
					if n.Args[j].Type == ir.Bool {
						at[j] = 1 - b.values[p] // may be either
					}
					switch w := b.steps[i].Eval(at[:], nil); {
					case w == v || w != w && v != v:
					case (w-v)-(w-v) != 0:
						moved = math.Inf(1)
					default:
						moved = max(moved, math.Abs(w-v))
					}
				}
				at[j] = b.values[p]
				e += moved
			}
			if n.Type == ir.F32 && v-v == 0 {
				own := basicULP * ulpOf(v, F32)
				if n.Code.Composite() {
					own = compositeULP * ulpOf(v, F32)
				}
				if exactCode(n.Code) {
					own = 0
				}
				e += own + e*epsilon
			}
			b.values[i] = v
		}
		b.errors[i] = e
	}
	return b.errors[len(b.errors)-1]
}

// exactCode reports whether a code never rounds.
func exactCode(c ir.Code) bool {
	switch c {
	case ir.Neg, ir.Abs, ir.Min, ir.Max, ir.Floor, ir.Ceil, ir.Trunc, ir.Round, ir.CopySign, ir.Select:
		return true
	}
	return false
}
