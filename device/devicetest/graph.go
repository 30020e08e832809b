package devicetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// graph is a random recording: operations over inputs and over each other.
type graph struct {
	g      *generator
	free   liberties // of the device
	inputs []Tensor
	nodes  []node
	values []known
}

// node is one operation; args number values: the inputs first, then the
// results of the nodes.
type node struct {
	c    Case // without the data of the operands
	args []int
}

// soft is a user's operation among those that graphs are made of.
var soft = op.Unary("softsign", func(x op.Expr) op.Expr { return x.Div(x.Abs().Add(op.Const(1))) })

// blend is one of three operands.
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

// newGraph makes a graph of n operations for a device.
func newGraph(seed uint64, n int, free liberties) (*graph, error) {
	r := &graph{g: newGenerator(seed), free: free}
	rows, cols := []int{1, 2, 3, 17, 64}[r.g.IntN(5)], []int{1, 5, 16, 33, 64, 130}[r.g.IntN(6)]
	for _, s := range []op.Shape{{rows, cols}, {rows, cols}, {cols}, {rows, 1}, {}} {
		t := r.g.tensor(op.F32, s, r.g.tame)
		r.inputs = append(r.inputs, t)
		r.values = append(r.values, exactly(t))
	}
	for range n {
		if err := r.grow(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// pick returns a value of the type, a late one more often, and -1 if there is none.
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

// beside returns a value that lies over value i or under it, of type d.
func (r *graph) beside(i int, d op.DType) int {
	return r.pick(func(v known) bool {
		if v.typ != d {
			return false
		}
		_, err := op.Broadcast(v.shape, r.values[i].shape)
		return err == nil
	})
}

// grow adds one operation, or none if what it tried does not fit.
func (r *graph) grow() error {
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
			// A matrix times another, or itself, transposed.
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
	shapes := make([]op.Shape, len(args))
	for i, a := range args {
		shapes[i] = r.values[a].shape
		c.In = append(c.In, Tensor{Type: r.values[a].typ, Shape: shapes[i]})
	}
	a := c.Attrs()
	out, err := c.Op.Shapes(&a, shapes)
	if err != nil {
		return nil // does not fit: three that fit pairwise, the extreme of nothing
	}
	if n, _ := out[0].Size(); n > 1<<14 || n == 0 {
		return nil
	}
	v, err := infer(&c, operands(args, r.values), r.free)
	if err != nil {
		return fmt.Errorf("%v: %w", &c, err)
	}
	if v.undecided()*20 > len(v.data) {
		return nil // there is nothing in it to be right or wrong
	}
	for _, e := range v.data {
		if math.Abs(e) > 1e6 && v.typ == op.F32 {
			return nil // keep clear of overflow
		}
		if r.free.finite && e-e != 0 {
			return nil // compilers may take it that there is none
		}
	}
	r.nodes = append(r.nodes, node{c, args})
	r.values = append(r.values, v)
	return nil
}

// look returns a view of value x, or x beside another value.
func (r *graph) look(x int) (Case, []int) {
	g, s := r.g, r.values[x].shape
	if len(s) == 0 {
		return Case{Op: op.Expand, Extents: []int{1 + g.IntN(3)}}, []int{x}
	}
	axis := g.IntN(len(s))
	switch g.IntN(7) {
	case 0:
		return Case{Op: op.Permute, Extents: g.Perm(len(s))}, []int{x}
	case 1:
		step := []int{1, 2, 3, -1, -2}[g.IntN(5)]
		return Case{Op: op.Slice, Extents: []int{axis, g.IntN(s[axis]+1) * min(1, max(step, 0)), op.End, step}}, []int{x}
	case 2:
		return Case{Op: op.Flip, Extents: []int{axis}}, []int{x}
	case 3:
		return Case{Op: op.Expand, Extents: append([]int{1 + g.IntN(3)}, s...)}, []int{x}
	case 4:
		return Case{Op: op.Pad, Extents: []int{axis, g.IntN(4), g.IntN(4)}, Params: []float32{float32(g.IntN(5) - 2)}}, []int{x}
	case 5:
		n := s[axis]
		for d := 2; d <= n; d++ {
			if n%d == 0 {
				return Case{Op: op.Reshape, Extents: append(append(slices.Clone(s[:axis]), d, n/d), s[axis+1:]...)}, []int{x}
			}
		}
		return Case{Op: op.Reshape, Extents: []int{-1}}, []int{x}
	}
	y := r.pick(func(v known) bool { return v.typ == op.F32 && v.shape.Equal(s) })
	return Case{Op: op.Concat, Extents: []int{axis}}, []int{x, y}
}

// operands returns those that args number.
func operands(args []int, values []known) []known {
	in := make([]known, len(args))
	for i, a := range args {
		in[i] = values[a]
	}
	return in
}

// String lists the graph.
func (r *graph) String() string {
	var b strings.Builder
	for i, x := range r.inputs {
		fmt.Fprintf(&b, "v%d = input %v\n", i, x.Shape)
	}
	for i, n := range r.nodes {
		fmt.Fprintf(&b, "v%d = %v from %v\n", len(r.inputs)+i, &n.c, n.args)
	}
	return b.String()
}

// sinks returns the values that nothing consumes, and some others.
func (r *graph) sinks() []int {
	used := make([]bool, len(r.values))
	for _, n := range r.nodes {
		for _, a := range n.args {
			used[a] = true
		}
	}
	var list []int
	for i := len(r.inputs); i < len(r.values); i++ {
		if !used[i] || i%5 == 0 {
			list = append(list, i)
		}
	}
	return list
}

// compare holds what a device gave for a value to what is known of it.
func (v *known) compare(a *array) error {
	if err := a.intact(); err != nil {
		return err
	}
	size, poison := a.typ.Size(), poisonOf(a.typ)
	for i, r := range v.ranges {
		got := a.typ.Float64(a.data, i)
		switch {
		case bytes.Equal(a.data[i*size:][:size], poison):
			return fmt.Errorf("element %d of %v was not written", i, v.shape)
		case !r.Contains(got):
			return fmt.Errorf("element %d of %v is %v, want %v, from %v to %v", i, v.shape, got, v.data[i], r.Lo, r.Hi)
		}
	}
	return nil
}

// recordOver records the graph and returns all its values.
func (r *graph) recordOver(b *batch.Batch, inputs []*array) ([]batch.Value, error) {
	var values []batch.Value
	for i, a := range inputs {
		values = append(values, a.upload(b, r.inputs[i].Shape))
	}
	for _, n := range r.nodes {
		var in []batch.Value
		for _, a := range n.args {
			in = append(in, values[a])
		}
		v, err := n.c.record(b, in)
		if err != nil {
			return nil, err
		}
		values = append(values, v[0])
	}
	return values, nil
}

// record records the graph with its sinks going into arrays.
func (r *graph) record(b *batch.Batch, inputs []*array) (values []batch.Value, outs map[int]*array, err error) {
	if values, err = r.recordOver(b, inputs); err != nil {
		return nil, nil, err
	}
	outs = map[int]*array{}
	for _, i := range r.sinks() {
		v := r.values[i]
		outs[i] = newArray(v.typ, len(v.data))
		outs[i].get(b, values[i])
	}
	return values, outs, b.Err()
}

// run executes the graph in one batch, where a device may fuse, and operation
// by operation, and as a plan.
func (r *graph) run(ctx context.Context, dev *device.Device) error {
	var inputs []*array
	for _, x := range r.inputs {
		inputs = append(inputs, arrayOf(x))
	}
	b := batch.New(dev)
	_, outs, err := r.record(b, inputs)
	if err != nil {
		return err
	}
	if len(outs) == 0 {
		return nil
	}
	if err := b.Execute(ctx); err != nil {
		return fmt.Errorf("in one batch: %w", err)
	}
	for i, a := range outs {
		if err := r.values[i].compare(a); err != nil {
			return fmt.Errorf("in one batch: v%d: %w", i, err)
		}
	}
	for i, a := range inputs {
		if err := a.unchanged(arrayOf(r.inputs[i])); err != nil {
			return fmt.Errorf("in one batch: v%d: %w", i, err)
		}
	}

	// Each operation alone, on what the one before it gave: then its own
	// tolerance must hold.
	arrays := append([]*array(nil), inputs...)
	for i, n := range r.nodes {
		c := n.c
		c.In = append([]Tensor(nil), n.c.In...)
		var in []*array
		for j, a := range n.args {
			x := arrays[a]
			c.In[j].Data = make([]float64, x.n)
			for k := range c.In[j].Data {
				c.In[j].Data[k] = x.typ.Float64(x.data, k)
			}
			in = append(in, x)
		}
		want, types, err := c.Reference()
		if err != nil {
			return err
		}
		out := newArray(types[0], len(want[0].Data))
		if err := c.inBatch(ctx, dev, in, []*array{out}); err != nil {
			return fmt.Errorf("alone: v%d: %w", len(inputs)+i, err)
		}
		also, err := c.allows(r.free)
		if err != nil {
			return err
		}
		if err := out.check(c.Op, want[0], &also, 0); err != nil {
			return fmt.Errorf("alone: v%d, %v: %w", len(inputs)+i, &c, err)
		}
		arrays = append(arrays, out)
	}
	for i := range outs {
		if err := r.values[i].compare(arrays[i]); err != nil {
			return fmt.Errorf("one by one: v%d: %w", i, err)
		}
	}
	return r.replay(ctx, dev, inputs)
}

// replay runs the graph as a plan, twice with other operands.
func (r *graph) replay(ctx context.Context, dev *device.Device, inputs []*array) error {
	var blank []*array
	for _, a := range inputs {
		blank = append(blank, newArray(a.typ, a.n))
	}
	b := batch.New(dev)
	values, outs, err := r.record(b, blank)
	if err != nil {
		return err
	}
	plan, err := b.Compile(ctx)
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	for round := range 2 {
		vals := r.values
		if round == 1 {
			if vals, err = r.others(); err != nil {
				return err
			}
		}
		var bind []batch.Binding
		for i := range inputs {
			a := arrayOf(Tensor{Type: op.F32, Shape: vals[i].shape, Data: vals[i].data})
			// A scalar is a reshaped upload, whose own value is not kept here.
			if len(vals[i].shape) > 0 {
				bind = append(bind, batch.Set(values[i], a.float32s()))
			} else {
				copy(blank[i].data, a.data)
			}
		}
		for _, a := range outs {
			a.poison()
		}
		if err := plan.Run(ctx, bind...); err != nil {
			return fmt.Errorf("plan: %w", err)
		}
		for i, a := range outs {
			if err := vals[i].compare(a); err != nil {
				return fmt.Errorf("plan, run %d: v%d: %w\n%v", round, i, err, plan)
			}
		}
	}
	return nil
}

// others returns other inputs and what follows from them. For a device that may take
// it that there are neither infinities nor NaN there are none: where new numbers
// lead to one, as the root of a difference does, their signs stay, or their
// proportions, or at last the inputs.
func (r *graph) others() ([]known, error) {
	for try := range 16 {
		scale := 0.5 + r.g.Float64()/2
		vals := make([]known, len(r.inputs), len(r.values))
		for i, x := range r.inputs {
			t := r.g.tensor(op.F32, x.Shape, r.g.tame)
			for k, was := range x.Data {
				switch {
				case try >= 8:
					t.Data[k] = op.F32.Round(was * scale)
				case try >= 4:
					t.Data[k] = math.Copysign(t.Data[k], was)
				}
			}
			vals[i] = exactly(t)
		}
		special := false
		for i := range r.nodes {
			n := &r.nodes[i]
			v, err := infer(&n.c, operands(n.args, vals), r.free)
			if err != nil {
				return nil, err
			}
			special = special || slices.ContainsFunc(v.data, func(e float64) bool { return e-e != 0 })
			vals = append(vals, v)
		}
		if !special || !r.free.finite {
			return vals, nil
		}
	}
	return r.values, nil
}

func graphs(t *testing.T, open Open) {
	dev := start(t, open)
	n := 150
	switch {
	case testutil.Raced && dev.Info().Kind != device.CPU: // one goroutine, and a library of C
		n = 5
	case short():
		n = 30
	case strings.HasPrefix(dev.Info().Detail, "software"): // which compiles each for half a second
		n = 60
	}
	t.Logf("%d graphs", n)
	seed, free := freshSeed(t), libertiesOf(t.Context(), dev)
	for i := range n {
		r, err := newGraph(seed+uint64(i), 4+i%28, free)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.run(t.Context(), dev); err != nil {
			t.Fatalf("graph %d: %v\n%v", i, err, r)
		}
	}
}

// FuzzGraphs is the body of a fuzz target: random graphs, in one batch, as a
// plan and operation by operation, against the reference.
//
//	func FuzzGraph(f *testing.F) { devicetest.FuzzGraphs(f, open) }
func FuzzGraphs(f *testing.F, open Open) {
	for seed := range 10 {
		f.Add(uint64(1000+seed), uint8(3*seed))
	}
	dev := start(f, open)
	f.Fuzz(func(t *testing.T, seed uint64, n uint8) {
		r, err := newGraph(seed, int(n%64), liberties{})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.run(t.Context(), dev); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("%v\n%v", err, r)
		}
	})
}
