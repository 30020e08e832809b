package devicetest

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rayo-go/rayo/op"
)

// graph is a random recording of operations and kernels. It has inputs, and it uses arrays on the device and stores
// to them.
type graph struct {
	g       *generator
	free    deviations // of the device
	scope   scope
	nodes   []node
	buffers []Tensor // arrays on the device, with their initial contents
	state            // after the last node
	keeps   bool     // results come back by Keep and Read, not by Get
}

// scope lists the features that a graph may use in addition to float32 numbers.
type scope struct {
	any       bool // every operation of the catalogue, stores and kernels
	types     []op.DType
	quantised bool
}

// node is one step of the recording. The values from number first on are its results.
type node struct {
	kind     nodeKind
	c        Case   // the computation, without the data of the operands
	args     []int  // values that it consumes, -1 for an absent operand
	buf, off int    // used and stored
	source   Tensor // input
	constant bool   // the input is a constant of the recording
	first    int
}

type nodeKind uint8

const (
	computed nodeKind = iota
	input
	used
	stored
	launched
)

// soft is a user's operation in graphs.
var soft = op.Unary("softsign", func(x op.Expr) op.Expr { return x.Div(x.Abs().Add(op.Const(1))) })

// blend is a user's operation of three operands.
var blend = op.Ternary("blend", func(x, y, z op.Expr) op.Expr {
	return op.Select(z.Lt(op.Const(0)), x, x.Add(y).Mul(op.Const(0.5)))
})

var (
	unaries = []*op.Operation{op.Relu, op.LeakyRelu, op.Elu, op.Sigmoid, op.Tanh, op.Silu, op.HardSwish, op.Gelu, op.GeluTanh,
		op.Softplus, op.Abs, op.Neg, op.Sign, op.Floor, op.Round, op.Exp, op.Sqrt, op.Square, op.Sin, op.Cos, op.Erf,
		op.Clip, op.Scale, op.AddScalar, soft}
	binaries    = []*op.Operation{op.Add, op.Sub, op.Mul, op.Div, op.Minimum, op.Maximum, op.Axpy, op.Lerp}
	comparisons = []*op.Operation{op.Less, op.LessEqual, op.Greater, op.GreaterEqual, op.Equal, op.NotEqual}
	reductions  = []*op.Operation{op.Sum, op.Mean, op.Max, op.Min, op.Var, op.NormL1, op.NormL2, op.NormLinf}
)

// newGraph makes a graph of n steps for a device.
func newGraph(seed uint64, n int, free deviations, sc scope) (*graph, error) {
	r := &graph{g: newGenerator(seed), free: free, scope: sc, keeps: seed%2 == 0}
	rows, cols := []int{1, 2, 3, 17, 64}[r.g.IntN(5)], []int{1, 5, 16, 33, 64, 130}[r.g.IntN(6)]
	if sc.any && r.g.IntN(16) == 0 {
		rows, cols = r.g.IntN(2), []int{0, 5}[r.g.IntN(2)]
	}
	for _, s := range []op.Shape{{rows, cols}, {rows, cols}, {cols}, {rows, 1}, {}} {
		r.take(node{kind: input, source: r.g.tensor(op.F32, s, r.g.tame)})
	}
	if sc.any {
		third := sc.types[r.g.IntN(len(sc.types))]
		if third == op.Bool {
			third = op.I32 // Go programs cannot upload truth values
		}
		for _, d := range []op.DType{op.F32, op.F32, third} {
			r.buffer(r.g.tensor(d, op.Shape{max(rows, 1), max(cols, 1)}, r.g.simple))
		}
	}
	for range n {
		if err := r.grow(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// take adds a node that cannot fail and returns its first value.
func (r *graph) take(n node) int {
	n.first = len(r.values)
	if err := r.state.run(&n, nil); err != nil {
		panic(err) // only nodes with operations can fail
	}
	r.nodes = append(r.nodes, n)
	return n.first
}

// buffer adds an array on the device and returns its number.
func (r *graph) buffer(t Tensor) int {
	r.buffers = append(r.buffers, t)
	v := exactly(t)
	r.memory = append(r.memory, v.clone())
	return len(r.buffers) - 1
}

// pick returns the number of a random value of the type, more often a late one, or -1 if the graph has none.
func (r *graph) pick(ok func(known) bool) int {
	var found []int
	for i, v := range r.values {
		if ok(v) {
			found = append(found, i)
		}
	}
	if len(found) == 0 {
		return -1
	}
	i := max(r.g.IntN(len(found)), r.g.IntN(len(found)))
	return found[i]
}

func number(v known) bool { return v.typ == op.F32 }

// beside returns a value of type d whose shape broadcasts with that of value i.
func (r *graph) beside(i int, d op.DType) int {
	return r.pick(func(v known) bool {
		if v.typ != d {
			return false
		}
		_, err := op.Broadcast(v.shape, r.values[i].shape)
		return err == nil
	})
}

// grow adds a random step, or none if the step does not fit.
func (r *graph) grow() error {
	if r.scope.any {
		switch k := r.g.IntN(16); {
		case k < 4:
			return r.growTyped()
		case k < 7:
			return r.growCase()
		case k < 9:
			r.growMemory()
			return nil
		case k < 10:
			return r.growUpdate()
		}
	}
	return r.growFloat()
}

// growFloat adds an operation on float32 whose operands need not be certain: see known.
func (r *graph) growFloat() error {
	g := r.g
	c := Case{}
	var args []int
	x := r.pick(number)
	switch k := g.IntN(24); {
	case k >= 20:
		c, args = r.look(x)
	case k < 8:
		c.Op, args = unaries[g.IntN(len(unaries))], []int{x}
	case k < 13:
		c.Op, args = binaries[g.IntN(len(binaries))], []int{x, r.beside(x, op.F32)}
	case k < 14:
		y := r.beside(x, op.F32)
		c.Op, args = []*op.Operation{op.Fma, blend}[g.IntN(2)], []int{x, y, r.beside(x, op.F32)}
	case k < 16:
		if b := r.beside(x, op.Bool); b >= 0 && g.IntN(3) > 0 {
			c.Op, args = op.Where, []int{b, x, r.beside(x, op.F32)}
		} else {
			c.Op, args = comparisons[g.IntN(len(comparisons))], []int{x, r.beside(x, op.F32)}
		}
	case k < 18:
		c.Op, args, c.Rows = reductions[g.IntN(len(reductions))], []int{x}, g.IntN(2) == 0
	case k < 19:
		c.Op, args = []*op.Operation{op.Softmax, op.LogSoftmax, op.LayerNorm, op.RMSNorm}[g.IntN(4)], []int{x}
	default:
		m := r.pick(func(v known) bool { return v.typ == op.F32 && len(v.shape) == 2 })
		switch {
		case m < 0:
			return nil
		case g.IntN(3) == 0:
			c.Op, args = op.Transpose, []int{m}
		default:
			// The product of a matrix and the transpose of another matrix or of itself.
			w := r.pick(func(v known) bool {
				return v.typ == op.F32 && len(v.shape) == 2 && v.shape[1] == r.values[m].shape[1]
			})
			o := op.MatMulOpts{TransB: true}
			if g.IntN(2) == 0 {
				o.Act = op.Tanh
			}
			c.Op, c.Options, args = op.MatMul, o, []int{m, w}
		}
	}
	for _, a := range args {
		if a < 0 {
			return nil
		}
	}
	if _, listed := lists[c.Op]; !listed {
		c.Params, _ = g.params(c.Op)
		if c.Op.Options() != "" {
			c.Params = nil
		}
		for i := range c.Params {
			c.Params[i] = float32(g.IntN(9)-4) / 4
		}
	}
	_, err := r.try(c, args)
	return err
}

// try adds an operation over values and reports whether it fits.
func (r *graph) try(c Case, args []int) (bool, error) {
	shapes := make([]op.Shape, len(args))
	c.In = nil
	for i, a := range args {
		t := Tensor{}
		if a >= 0 {
			shapes[i] = r.values[a].shape
			t = Tensor{Type: r.values[a].typ, Shape: shapes[i]}
		}
		c.In = append(c.In, t)
	}
	a := c.Attrs()
	if _, err := c.Op.Types(&a, c.Types()); err != nil {
		return false, nil
	}
	if c.Op == op.Attention || c.Op == op.MatMulQ || c.Op == op.MatMulExperts {
		for _, i := range args {
			if i >= 0 && slices.ContainsFunc(r.values[i].data, func(e float64) bool { return e-e != 0 }) {
				return false, nil // an infinity times the weight 0: its magnitude has no bound
			}
		}
	}
	out, err := c.Op.Shapes(&a, shapes)
	if err != nil {
		return false, nil // it does not fit: for example three operands that fit only pairwise, or the maximum of an empty array
	}
	if n, _ := out[0].Size(); n > 1<<14 {
		return false, nil
	}
	n := node{c: c, args: args, first: len(r.values)}
	if err := r.state.run(&n, func(c *Case, in []known) ([]known, error) { return infer(c, in, r.free) }); err != nil {
		return false, fmt.Errorf("%v: %w", &c, err)
	}
	for _, v := range r.values[n.first:] {
		if !r.acceptable(&v) {
			r.values = r.values[:n.first]
			return false, nil
		}
	}
	r.nodes = append(r.nodes, n)
	return true, nil
}

// acceptable reports whether the graph may contain a result.
func (r *graph) acceptable(v *known) bool {
	if v.undecided()*20 > len(v.data) {
		return false // too many elements are undecided for a meaningful comparison
	}
	for _, e := range v.data {
		if math.Abs(e) > 1e6 && v.typ.Float() && e-e == 0 {
			return false // keep clear of overflow
		}
		if r.free.finite && e-e != 0 {
			return false // compilers may assume that no value is infinite or NaN
		}
	}
	return true
}

// operands returns the values with the numbers args. An absent operand has no type.
func operands(args []int, values []known) []known {
	in := make([]known, len(args))
	for i, a := range args {
		if a >= 0 {
			in[i] = values[a]
		}
	}
	return in
}

// String lists the graph.
func (r *graph) String() string {
	var b strings.Builder
	for i, x := range r.buffers {
		fmt.Fprintf(&b, "b%d of %v%v\n", i, x.Type, x.Shape)
	}
	for _, n := range r.nodes {
		switch n.kind {
		case input:
			fmt.Fprintf(&b, "v%d = input %v%v, constant %v\n", n.first, n.source.Type, n.source.Shape, n.constant)
		case used:
			fmt.Fprintf(&b, "v%d = use b%d\n", n.first, n.buf)
		case stored:
			fmt.Fprintf(&b, "store b%d from %d on: v%d\n", n.buf, n.off, n.args[0])
		case launched:
			fmt.Fprintf(&b, "v%d, v%d = launch from %v\n", n.first, n.first+1, n.args)
		default:
			fmt.Fprintf(&b, "v%d = %v from %v\n", n.first, &n.c, n.args)
		}
	}
	return b.String()
}

// sinks returns the results that no node consumes, and some of the other results.
func (r *graph) sinks() []int {
	consumed := make([]bool, len(r.values))
	for _, n := range r.nodes {
		for _, a := range n.args {
			if a >= 0 {
				consumed[a] = true
			}
		}
	}
	var list []int
	for k, n := range r.nodes {
		end := len(r.values)
		if k+1 < len(r.nodes) {
			end = r.nodes[k+1].first
		}
		for i := n.first; i < end; i++ {
			if n.kind == computed || n.kind == launched {
				if !consumed[i] || i%5 == 0 {
					list = append(list, i)
				}
			} else if n.kind == used && i%3 == 0 && !r.values[i].typ.Quantized() {
				list = append(list, i)
			}
		}
	}
	return list
}
