package devicetest

import (
	"math"
	"slices"
	"sync"

	"github.com/rayo-go/rayo/op"
)

// simple returns a number with few significant bits. Sums and products of such numbers are exact, so that the
// test can require exact results.
func (g *generator) simple(d op.DType) float64 {
	if d == op.Bool {
		return float64(g.IntN(2))
	}
	v := float64(g.IntN(33)-16) / 4
	if g.IntN(24) == 0 {
		v = []float64{300, 2049, 70000, 0.1, -100001, math.Copysign(0, -1)}[g.IntN(6)]
	}
	return d.Round(v)
}

// growTyped adds an operation over values of any type, without changes of their shapes.
func (r *graph) growTyped() error {
	g := r.g
	x := r.pick(func(v known) bool { return !v.typ.Quantized() })
	v := r.values[x]
	list := op.Catalogue()
	o := list[g.IntN(len(list))]
	if g.IntN(4) == 0 {
		o = op.Cast
	}
	c := Case{Op: o, To: r.scope.types[g.IntN(len(r.scope.types))]}
	c.Params, c.Options = r.parameters(o)
	args := []int{x}
	switch o.Class() {
	case op.Elementwise:
		if o == op.Where {
			args = []int{r.beside(x, op.Bool), x}
		}
		for len(args) < len(o.Inputs()) {
			args = append(args, r.beside(x, v.typ))
		}
	case op.Reduction:
		c.Rows = g.IntN(2) == 0
		if len(o.Inputs()) > 1 {
			args = append(args, r.like(v.typ, v.shape))
		}
	case op.Row:
		for range len(o.Inputs()) - 1 {
			w := -1
			if g.IntN(2) == 0 && len(v.shape) > 0 {
				w = r.like(v.typ, v.shape[len(v.shape)-1:])
			}
			args = append(args, w)
		}
		for args[len(args)-1] < 0 {
			args = args[:len(args)-1]
		}
		_, err := r.try(c, args)
		return err
	default:
		n, _ := v.shape.Size()
		_, cols := v.shape.Rows()
		switch o {
		case op.TopK:
			c.Options = op.TopKOpts{K: g.IntN(cols + 1)}
		case op.Sort:
			c.Options = op.SortOpts{Descending: g.IntN(2) == 0}
		case op.Reshape:
			c.Extents = [][]int{{n}, {n, 1}, {1, n}, {1, 1, n}}[g.IntN(4)]
		case op.Transpose:
		default:
			if _, listed := lists[o]; !listed {
				return nil // growCase has shapes for it
			}
			c, args = r.look(x)
		}
	}
	for _, a := range args {
		if a < 0 {
			return nil
		}
	}
	_, err := r.try(c, args)
	return err
}

// parameters returns parameters of an operation: required ones, or one of its options.
func (r *graph) parameters(o *op.Operation) ([]float32, Options) {
	params, options := r.g.params(o)
	if o.Options() != "" {
		params = nil
	}
	for i := range params {
		params[i] = float32(r.g.IntN(9)-4) / 4
	}
	if len(options) == 0 {
		return params, nil
	}
	return params, options[r.g.IntN(len(options))]
}

// like returns the number of a value of the given type and shape, or -1.
func (r *graph) like(d op.DType, s op.Shape) int {
	return r.pick(func(v known) bool { return v.typ == d && v.shape.Equal(s) })
}

// smallCases returns cases of an operation. Graphs use their shapes, options and indices.
var smallCases sync.Map // of caseKey to []Case

type caseKey struct {
	o *op.Operation
	d op.DType
}

func casesOf(o *op.Operation, d op.DType) []Case {
	key := caseKey{o, d}
	if list, ok := smallCases.Load(key); ok {
		return list.([]Case)
	}
	var list []Case
	for _, c := range Cases(o, d, 11, true) {
		if c.elements() <= 1500 && c.work() < 3e5 {
			list = append(list, c)
		}
	}
	smallCases.Store(key, list)
	return list
}

// growCase adds an operation with the shapes and options of a case of the conformance suite. Each operand is a
// value of the graph if one fits, possibly after a reshape or a cast, otherwise a new input.
func (r *graph) growCase() error {
	g := r.g
	list := op.Catalogue()
	o := list[g.IntN(len(list))]
	for o.Class() != op.Shaped && g.IntN(3) > 0 {
		o = list[g.IntN(len(list))]
	}
	cases := casesOf(o, r.scope.types[g.IntN(len(r.scope.types))])
	if len(cases) == 0 {
		return nil
	}
	c := cases[g.IntN(len(cases))]
	if c.quantized() && !r.scope.quantised || o == op.Cast && !r.has(c.To) {
		return nil
	}
	var args []int
	for i, t := range c.In {
		a := -1
		if t.Type != op.InvalidType {
			if !t.Type.Quantized() && !r.has(t.Type) {
				return nil
			}
			var err error
			indices := i > 0 && (o == op.Gather || o == op.Rope) || i == 1 && o == op.Scatter || i == 2 && o == op.MatMulExperts
			if a, err = r.operand(t, indices || t.Type.Quantized()); err != nil {
				return err
			}
		}
		args = append(args, a)
	}
	_, err := r.try(c, args)
	return err
}

func (r *graph) has(d op.DType) bool { return slices.Contains(r.scope.types, d) }

// operand returns a value of the type and shape of t. If requested, it has the elements of t.
func (r *graph) operand(t Tensor, exact bool) (int, error) {
	g := r.g
	n := len(t.Data)
	if !exact {
		if v := r.like(t.Type, t.Shape); v >= 0 && g.IntN(4) > 0 {
			return v, nil
		}
		same := func(v known) bool { return v.typ == t.Type && len(v.data) == n && len(t.Shape) > 0 }
		if v := r.pick(same); v >= 0 && g.IntN(2) == 0 {
			if ok, err := r.try(Case{Op: op.Reshape, Extents: t.Shape}, []int{v}); ok || err != nil {
				return len(r.values) - 1, err
			}
		}
		other := func(v known) bool { return !v.typ.Quantized() && v.shape.Equal(t.Shape) }
		if v := r.pick(other); v >= 0 && g.IntN(2) == 0 {
			if ok, err := r.try(Case{Op: op.Cast, To: t.Type}, []int{v}); ok || err != nil {
				return len(r.values) - 1, err
			}
		}
		t = g.tensor(t.Type, t.Shape, []func(op.DType) float64{g.simple, g.simple, g.tame}[g.IntN(3)])
	}
	switch k := g.IntN(4); {
	case k == 0 && t.Type == op.F32 && n == 1:
		return r.take(node{kind: input, source: t, constant: true}), nil
	case k == 1 && t.Type != op.Bool:
		return r.take(node{kind: used, buf: r.buffer(t)}), nil
	}
	return r.take(node{kind: input, source: t}), nil
}

// memories is the largest number of arrays on the device that a graph stores to.
const memories = 3

// growMemory adds the use of an array on the device, or a store. Graphs store to the second array but never use
// it, so that a kernel may write its result directly to it.
func (r *graph) growMemory() {
	g := r.g
	buf := g.IntN(memories)
	if t := r.buffers[buf]; g.IntN(3) == 0 && buf != 1 {
		if t.Type != op.Bool {
			r.take(node{kind: used, buf: buf})
		}
		return
	}
	r.store(buf, r.pick(func(v known) bool {
		return v.typ == r.buffers[buf].Type && len(v.data) <= len(r.buffers[buf].Data)
	}))
}

// store adds the store of a value, if the graph has one, at a random place in an array.
func (r *graph) store(buf, v int) {
	if v < 0 {
		return
	}
	off := 0
	if rest := len(r.buffers[buf].Data) - len(r.values[v].data); rest > 0 && r.g.IntN(2) == 0 {
		off = r.g.IntN(rest + 1)
		off -= off % max(1, 4/r.buffers[buf].Type.Size()) // on WebGPU arrays begin at multiples of four bytes
	}
	r.take(node{kind: stored, args: []int{v}, buf: buf, off: off})
}

// growUpdate adds the launch of a kernel that updates an array. The array is a value, or an array on the device to
// which the graph stores the result and that no other node uses. A device may update the latter in place,
// unless an operation in between reads the old value.
func (r *graph) growUpdate() error {
	g := r.g
	y := r.pick(func(v known) bool { return v.typ == op.F32 && len(v.data) > 0 && r.moderate(&v) })
	if y < 0 {
		return nil
	}
	buf := -1
	if g.IntN(2) == 0 {
		buf = r.buffer(g.tensor(op.F32, r.values[y].shape, g.simple))
		y = r.take(node{kind: used, buf: buf})
	}
	x := r.pick(func(v known) bool { return v.typ == op.F32 && len(v.data) == len(r.values[y].data) })
	doubled := r.take(node{kind: launched, args: []int{x, y}})
	if buf < 0 {
		return nil
	}
	if g.IntN(2) == 0 {
		if _, err := r.try(Case{Op: op.Neg}, []int{y}); err != nil {
			return err
		}
	}
	r.take(node{kind: stored, args: []int{doubled}, buf: buf})
	return nil
}

// moderate reports whether the elements of v are small enough to be doubled.
func (r *graph) moderate(v *known) bool {
	return !slices.ContainsFunc(v.data, func(e float64) bool { return math.Abs(e) > 1e5 || r.free.finite && e-e != 0 })
}
