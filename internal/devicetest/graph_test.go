//go:build !race

// These tests run in one goroutine, in which the race detector could find nothing.

package devicetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// simulated is the least accurate device that the tolerances allow: each operation returns
// the reference over the results before it, changed by a random error up to its bound.
// other replaces the result of the node with index planted, if that is a node.
type simulated struct {
	*rand.Rand
	free    deviations // only flushes is used
	planted int
	other   func(c *Case, y Tensor) Tensor
}

// run returns the values of the graph.
func (d *simulated) run(r *graph) ([]Tensor, error) {
	i := -1
	s, err := r.play(own, func(c *Case, in []known) ([]known, error) {
		i++
		one := *c
		one.In = nil
		for k := range in {
			one.In = append(one.In, in[k].tensor())
		}
		y, err := d.compute(&one)
		if err != nil {
			return nil, err
		}
		if d.other != nil && i == d.planted {
			y[0] = d.other(&one, y[0])
		}
		var out []known
		for _, t := range y {
			out = append(out, exactly(t))
		}
		return out, nil
	})
	if err != nil {
		return nil, err
	}
	var values []Tensor
	for k := range s.values {
		values = append(values, s.values[k].tensor())
	}
	return values, nil
}

// operations returns the nodes that are operations.
func (r *graph) operations() (list []node) {
	for _, n := range r.nodes {
		if n.kind == computed {
			list = append(list, n)
		}
	}
	return list
}

func (d *simulated) compute(c *Case) ([]Tensor, error) {
	ref, types, err := c.Reference()
	if err != nil {
		return nil, err
	}
	var out []Tensor
	for k := range ref {
		y, err := d.result(c, ref[k], types[k])
		if err != nil {
			return nil, err
		}
		out = append(out, y)
	}
	return out, nil
}

func (d *simulated) result(c *Case, ref *op.Array, t op.DType) (Tensor, error) {
	if o, ok := c.Options.(op.MatMulOpts); ok && o.Act != nil && t == op.F32 { // a half float is rounded once, after the activation
		plain, act := *c, Case{Op: o.Act}
		o.Act = nil
		plain.Options = o
		y, err := d.compute(&plain)
		if err != nil {
			return Tensor{}, err
		}
		a := c.Attrs()
		_, attrs := a.Activation()
		for i := range act.Op.Params() {
			act.Params = append(act.Params, attrs.Float(i))
		}
		act.In = y
		if y, err = d.compute(&act); err != nil {
			return Tensor{}, err
		}
		return y[0], nil
	}
	y := Tensor{Type: t, Shape: ref.Shape, Data: make([]float64, len(ref.Data))}
	if c.Op.ID() < 0 {
		return y, d.users(c, &y)
	}
	for i, want := range ref.Data {
		mag := 0.0
		if ref.Mag != nil {
			mag = ref.Mag[i]
		}
		b := min(c.Op.Tolerance().Bound(want, mag, y.Type), 1e30) * 0.999
		by := []float64{-b, b, b * (2*d.Float64() - 1), 0}[d.IntN(4)]
		y.Data[i] = y.Type.Round(want + by)
		if math.Abs(y.Data[i]-want) > b || y.Type == op.Bool {
			y.Data[i] = y.Type.Round(want)
		}
		if d.free.flushes && math.Abs(y.Data[i]) < 0x1p-126 {
			y.Data[i] = 0
		}
		if y.Data[i] == 0 && d.IntN(2) == 0 {
			y.Data[i] = math.Copysign(0, -y.Data[i]) // its sign is not defined
		}
	}
	return y, nil
}

// users computes a user's operation. Its tolerance is the range that its steps in float32 can reach.
func (d *simulated) users(c *Case, y *Tensor) error {
	var in []known
	for _, x := range c.In {
		in = append(in, exactly(x))
	}
	v, err := infer(c, in, deviations{})
	if err != nil {
		return err
	}
	for i, r := range v[0].ranges {
		x := []float64{r.Lo, r.Hi, v[0].data[i]}[d.IntN(3)]
		if y.Data[i] = op.F32.Round(x); !r.Contains(y.Data[i]) {
			y.Data[i] = op.F32.Round(v[0].data[i])
		}
	}
	return nil
}

// scopes are the scopes of the graphs whose ranges are checked without a device.
var scopes = []scope{{}, {any: true, types: op.DTypes(), quantised: true}}

// compareSome compares some values of a graph with their ranges.
func compareSome(r *graph, values []Tensor, some []int) error {
	for _, i := range some {
		if err := r.values[i].compare(arrayOf(values[i])); err != nil {
			return fmt.Errorf("v%d: %w", i, err)
		}
	}
	return nil
}

// TestGraphsAreJust checks that the tests never report a device whose results are within the tolerances, even near
// discontinuities, and that nearly all elements are decided.
func TestGraphsAreJust(t *testing.T) {
	n := 400
	if short() {
		n = 60
	}
	elements, undecided := 0, 0
	seed := testutil.Seed(t)
	for i := range n {
		free := []deviations{{}, {flushes: true, slack: vanishing}}[i%2]
		r, err := newGraph(seed+uint64(i), 4+i%44, free, scopes[i/2%len(scopes)])
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range r.sinks() {
			elements += len(r.values[k].data)
			undecided += r.values[k].undecided()
		}
		var all []int
		for k := range r.values {
			v := &r.values[k]
			if v.typ.Quantized() {
				continue
			}
			all = append(all, k)
			for j, x := range v.data {
				if !v.ranges[j].Contains(x) {
					t.Fatalf("graph %d: v%d: element %d is %v, from %v to %v\n%v", i, k, j, x, v.ranges[j].Lo, v.ranges[j].Hi, r)
				}
			}
		}
		for p := range 4 {
			d := &simulated{Rand: rand.New(rand.NewPCG(seed, uint64(4*i+p))), free: free}
			values, err := d.run(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := compareSome(r, values, all); err != nil {
				t.Fatalf("graph %d: %v\n%v", i, err, r)
			}
		}
	}
	t.Logf("%d of %d elements are not decided", undecided, elements)
	if undecided*50 > elements {
		t.Errorf("%d of %d elements are not decided", undecided, elements)
	}
}

// TestGraphsFlush checks that a subnormal result may be 0 on a device that flushes, and on
// no other, for operations of every class.
func TestGraphsFlush(t *testing.T) {
	for _, c := range []Case{
		{Op: op.Sum, In: []Tensor{{Type: op.F32, Shape: op.Shape{1, 2}, Data: []float64{0x1p-130, 0}}}},
		{Op: op.MatMul, In: []Tensor{{Type: op.F32, Shape: op.Shape{1, 1}, Data: []float64{0x1p-130}}, {Type: op.F32, Shape: op.Shape{1, 1}, Data: []float64{1}}}},
		{Op: op.Abs, In: []Tensor{{Type: op.F32, Shape: op.Shape{1}, Data: []float64{0x1p-130}}}},
	} {
		var in []known
		for _, x := range c.In {
			in = append(in, exactly(x))
		}
		for _, flushes := range []bool{false, true} {
			free := deviations{flushes: flushes, slack: vanishing}
			v, err := infer(&c, in, free)
			if err != nil {
				t.Fatal(err)
			}
			if r := v[0].ranges[0]; r.Contains(0) != flushes {
				t.Errorf("%v, flushes: %v: %v is from %v to %v", &c, flushes, v[0].data[0], r.Lo, r.Hi)
			}
		}
	}
}

// plants simulates compiler bugs: each function changes the result of a node.
var plants = map[string]func(r *rand.Rand, c *Case, y Tensor) Tensor{
	// Another operation of as many operands.
	"operation": func(r *rand.Rand, c *Case, y Tensor) Tensor {
		for _, list := range [][]*op.Operation{unaries, binaries, comparisons, reductions} {
			if i := slices.Index(list, c.Op); i >= 0 {
				w := *c
				w.Op = list[(i+1+r.IntN(len(list)-1))%len(list)]
				g := newGenerator(r.Uint64())
				if w.Params, _ = g.params(w.Op); w.Op.Options() != "" {
					w.Params = nil
				}
				if out, types, err := w.Reference(); err == nil {
					return Tensor{Type: types[0], Shape: out[0].Shape, Data: out[0].Data}
				}
			}
		}
		return y
	},
	// Each element is at the place of its neighbour.
	"offset": func(_ *rand.Rand, _ *Case, y Tensor) Tensor {
		z := y
		z.Data = append(append([]float64(nil), y.Data[min(1, len(y.Data)):]...), y.Data[:min(1, len(y.Data))]...)
		return z
	},
	// The last element is wrong, as after a loop with a wrong end.
	"tail": func(_ *rand.Rand, _ *Case, y Tensor) Tensor {
		z := y
		z.Data = append([]float64(nil), y.Data...)
		if n := len(z.Data); n > 0 && z.Type == op.F32 {
			z.Data[n-1] = z.Data[n-1]*1.02 + 0.02
		} else if n > 0 {
			z.Data[n-1] = 1 - z.Data[n-1]
		}
		return z
	},
	// The operands are exchanged.
	"swapped": func(_ *rand.Rand, c *Case, y Tensor) Tensor {
		if len(c.In) < 2 || c.In[0].Type != c.In[1].Type || c.Op.Class() != op.Elementwise {
			return y
		}
		w := *c
		w.In = append([]Tensor{c.In[1], c.In[0]}, c.In[2:]...)
		out, types, err := w.Reference()
		if err != nil {
			return y
		}
		return Tensor{Type: types[0], Shape: out[0].Shape, Data: out[0].Data}
	},
}

// TestGraphsNotice checks that a simulated bug in one node of a graph is found if it moves an
// element of that node's result out of its range and the result is compared. Consumers
// of the result may hide the bug: a comparison, a minimum or maximum.
func TestGraphsNotice(t *testing.T) {
	t.Parallel()
	// Few graphs have a node that some kinds of bugs apply to. Try graphs until there are
	// enough results for a rate, or until it is clear that the bug never applies.
	enough := 100
	if short() {
		enough = 25
	}
	seed := testutil.Seed(t)
	for name, plant := range plants {
		wrong, noticed, hidden := 0, 0, 0
		for i := 0; wrong < enough && i < 100*enough; i++ {
			r, err := newGraph(seed+uint64(i), 4+i%28, deviations{}, scopes[i%len(scopes)])
			if err != nil {
				t.Fatal(err)
			}
			list := r.operations()
			if len(list) == 0 {
				continue
			}
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			d := &simulated{Rand: rng, planted: rng.IntN(len(list))}
			at := list[d.planted].first
			changed := false
			d.other = func(c *Case, y Tensor) Tensor {
				z := plant(rng, c, y)
				v := &r.values[at]
				for j := range z.Data {
					z.Data[j] = z.Type.Round(z.Data[j])
					got, want := z.Data[j], v.data[j]
					same := got == want || got != got && want != want || math.Abs(got-want) <= 2*narrow*(1+math.Abs(want))
					changed = changed || v.decided(j) && !same
				}
				return z
			}
			values, err := d.run(r)
			if err != nil {
				t.Fatal(err)
			}
			if !changed {
				continue
			}
			wrong++
			seen := slices.Contains(r.sinks(), at)
			switch err := compareSome(r, values, r.sinks()); {
			case err != nil:
				noticed++
			case seen:
				t.Fatalf("%s in node %d of graph %d was not noticed\n%v", name, d.planted, i, r)
			default:
				hidden++
			}
		}
		t.Logf("%s: %d of %d noticed, %d hidden by what consumes them", name, noticed, wrong, hidden)
		if wrong < enough || noticed*2 < wrong {
			t.Errorf("%s: %d of %d mistakes were noticed", name, noticed, wrong)
		}
	}
}

// TestCasesAreDefined checks that the references have results for every case, and that few results are undefined or
// have infinite bounds, which any value would satisfy.
func TestCasesAreDefined(t *testing.T) {
	t.Parallel()
	for _, o := range op.Catalogue() {
		elements, loose := 0, 0
		for _, d := range op.DTypes() {
			for _, c := range Cases(o, d, 7, true) {
				out, types, err := c.Reference()
				if err != nil {
					t.Fatalf("%v: %v", &c, err)
				}
				for i, r := range out {
					for j, v := range r.Data {
						mag := 0.0
						if r.Mag != nil {
							mag = r.Mag[j]
						}
						elements++
						if b := o.Tolerance().Bound(v, mag, types[i]); types[i].Float() && v-v == 0 && b > math.Abs(v)/2+0.1 {
							loose++
						}
					}
				}
			}
		}
		if elements < 50 {
			t.Errorf("%s: only %d elements are compared", o, elements)
		}
		if loose*20 > elements && !o.CheckedAsWhole() { // factors are not unique: their product is compared
			t.Errorf("%s: the bounds of %d of %d elements are loose", o, loose, elements)
		}
	}
}
