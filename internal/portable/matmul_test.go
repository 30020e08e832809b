package portable

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/optest"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// runBy computes the trial by a plan that might not be chosen by default.
func (c *trial) runBy(g *rig, plan func(q *request) (*Plan, error)) error {
	r, err := c.request(Target{})
	if err != nil {
		return err
	}
	if c.layouts != nil {
		c.layouts(r)
	}
	q, err := check(r)
	if err != nil {
		return err
	}
	p, err := plan(q)
	if err != nil {
		return err
	}
	var in, out [][]byte
	for i, x := range c.values {
		m := optest.Encode(x, c.types[i])
		if a := r.In[i]; a.Layout != nil {
			m = optest.Lay(m, a.Type, a.Layout, a.N)
		}
		in = append(in, m)
	}
	for _, y := range r.Out {
		out = append(out, optest.Poisoned(int64(size(y.Shape)*y.Type.Size())))
	}
	if err := g.run(p, in, out); err != nil {
		return err
	}
	for i, y := range r.Out {
		if y.Layout != nil {
			out[i] = optest.Taken(out[i], y.Type, y.Layout)
		}
	}
	return c.use().Compare(typesOf(r.Out), out)
}

// run computes a product with one variant.
func (w matMulSchedule) run(c *trial, g *rig) error {
	return c.runBy(g, func(q *request) (*Plan, error) {
		pr, err := op.MatMulOf(&q.Attrs, []op.Shape{q.In[0].Shape, q.In[1].Shape})
		if err != nil {
			return nil, err
		}
		return launchMatMul(q, pr, w, "")
	})
}

func TestMatMul(t *testing.T) {
	rnd := rand.New(rand.NewPCG(31, 32))
	type sizes struct{ batch, m, k, n int }
	for i, s := range []sizes{
		{0, 1, 1, 1}, {0, 3, 0, 5}, {0, 7, 5, 3}, {0, 8, 32, 32}, {0, 9, 33, 31}, {0, 33, 17, 65}, {0, 64, 16, 64},
		{0, 1, 130, 200}, {0, 131, 20, 2}, {3, 5, 8, 12}, {2, 33, 7, 9}, {0, 2, 1100, 4}, {0, 129, 12, 132},
	} {
		for _, o := range []op.MatMulOpts{{}, {TransA: true}, {TransB: true}, {TransA: true, TransB: true, Act: op.Relu}} {
			shape := func(trans bool, rows, cols int) []int {
				if trans {
					rows, cols = cols, rows
				}
				if s.batch > 0 {
					return []int{s.batch, rows, cols}
				}
				return []int{rows, cols}
			}
			c := &trial{o: op.MatMul, attrs: o.Attrs(), types: []op.DType{op.F32, op.F32},
				values: []*op.Array{normal(rnd, shape(o.TransA, s.m, s.k)...), normal(rnd, shape(o.TransB, s.k, s.n)...)}}
			if i%2 == 1 {
				c.values, c.types = append(c.values, normal(rnd, s.n)), append(c.types, op.F32)
			}
			for _, w := range matMulSchedules {
				if w.spec.panel.Rows > 0 && s.k == 0 || !sampled() {
					continue
				}
				t.Run(fmt.Sprintf("%s/%v/%v%v", w.name, s, o.TransA, o.TransB), func(t *testing.T) {
					if err := w.spec.run(c, &rig{check: s.m*s.k*s.n < 10_000, subgroup: 32}); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

// TestMatMulManyGroups uses more workgroups than a grid has along one dimension.
func TestMatMulManyGroups(t *testing.T) {
	testutil.Need(t, "long") // takes a minute under the race detector
	rnd := rand.New(rand.NewPCG(33, 34))
	c := &trial{o: op.MatMul, types: []op.DType{op.F32, op.F32},
		values: []*op.Array{normal(rnd, 66_000, 1, 2), normal(rnd, 2, 3)}}
	if err := matMulSchedules[len(matMulSchedules)-1].spec.run(c, &rig{}); err != nil {
		t.Error(err)
	}
}

func TestMatVec(t *testing.T) {
	rnd := rand.New(rand.NewPCG(51, 52))
	for _, s := range [][2]int{{1, 0}, {1, 1}, {5, 33}, {31, 100}, {33, 7}, {3, 2100}, {2, 33000}, {300, 2}, {1, 140_000}, {2*busyLaneGroups + 1, 9}, {260, 516}} {
		for _, trans := range []bool{false, true} {
			a := normal(rnd, s[0], s[1])
			if trans {
				a = normal(rnd, s[1], s[0])
			}
			c := &trial{o: op.MatVec, attrs: op.MatVecOpts{Trans: trans}.Attrs(), types: []op.DType{op.F32, op.F32},
				values: []*op.Array{a, normal(rnd, s[1])}}
			c.everyVariant(t, s[0]*s[1] < 5000)
		}
	}
}
