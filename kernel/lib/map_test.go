package lib

import (
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/optest"
	"github.com/rayo-go/rayo/op"
)

// typesOf returns element types that an elementwise operation takes, and
// operands of them.
func elementwiseTrials(rnd *rand.Rand, o *op.Operation, shapes ...[]int) []*trial {
	var cs []*trial
	for _, d := range []op.DType{op.F32, op.I32, op.U32} {
		c := &trial{o: o, attrs: o.Defaults()}
		for i, p := range o.Params() {
			if p.Required {
				c.attrs.F[i] = op.Floats(float32(i) + 0.5).F[0]
			}
		}
		for i := range o.Inputs() {
			t := d
			if o == op.Where && i == 0 {
				t = op.Bool
			}
			x := normal(rnd, shapes[min(i, len(shapes)-1)]...)
			for j := range x.Data {
				x.Data[j] = t.Round(3 * x.Data[j])
			}
			c.values, c.types = append(c.values, x), append(c.types, t)
		}
		if o == op.Cast {
			c.attrs = op.CastTo(op.I32)
		}
		if _, err := o.Types(&c.attrs, c.types); err == nil {
			cs = append(cs, c)
		}
	}
	return cs
}

func TestElementwise(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, o := range op.Catalogue() {
		if o.Class() != op.Elementwise {
			continue
		}
		t.Run(o.Name(), func(t *testing.T) {
			for _, shape := range [][]int{{1}, {8}, {3, 7, 13}, {1028}} {
				for _, c := range elementwiseTrials(rnd, o, shape) {
					if c.types[0] == op.F32 {
						with(rnd, c.values[0], inf, -inf, missing)
					}
					c.everyVariant(t, len(shape) == 1)
				}
			}
		})
	}
}

func TestSpreads(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for _, shapes := range [][][]int{{{4, 8}, {8}}, {{4, 8}, {4, 1}}, {{4, 8}, {1}}, {{3, 5}, {5}}, {{3, 5}, {3, 1}}, {{}, {3, 5}}, {{6, 5}, {6, 5}}, {{3, 1, 1}, {3, 2, 2}}} {
		for _, o := range []*op.Operation{op.Sub, op.Less, op.Where} {
			for _, c := range elementwiseTrials(rnd, o, shapes...) {
				c.everyVariant(t, true)
			}
		}
	}
}

// TestProgram runs an elementwise program of several results.
func TestProgram(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 10))
	x, y := normal(rnd, 6, 4), normal(rnd, 4)
	a, b := ir.NewArg(0, ir.F32), ir.NewArg(1, ir.F32)
	sum, _ := ir.New(ir.Add, a, b)
	less, _ := ir.New(ir.Lt, a, b)
	r := &Request{Post: &Epilogue{In: []Operand{{op.F32, op.Full, 24}, {op.F32, op.Periodic, 4}}, Exprs: []*ir.Node{sum, less}},
		Out: []Array{{op.F32, op.Shape{6, 4}}, {op.Bool, op.Shape{6, 4}}}}
	p, err := For(r)
	if err != nil {
		t.Fatal(err)
	}
	in, out := [][]byte{optest.Encode(x, op.F32), optest.Encode(y, op.F32)}, [][]byte{optest.Poisoned(96), optest.Poisoned(96)}
	if err := (&rig{check: true, subgroup: 32}).run(p, in, out); err != nil {
		t.Fatal(err)
	}
	for i, v := range x.Data {
		w := y.Data[i%4]
		if got := op.F32.Float64(out[0], i); got != float64(float32(v+w)) {
			t.Errorf("sum %d: %v, not %v", i, got, v+w)
		}
		if got := op.Bool.Float64(out[1], i); got != 0 != (v < w) {
			t.Errorf("less %d: %v of %v and %v", i, got, v, w)
		}
	}
}
