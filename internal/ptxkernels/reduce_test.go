package ptxkernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

var reduceOps = []*op.Operation{op.Sum, op.Dot, op.Mean, op.Var, op.Min, op.Max, op.ArgMin, op.ArgMax, op.NormL1, op.NormL2, op.NormLinf}

// reduceTrial returns a reduction along rows or, if rows is negative, of all elements.
func reduceTrial(o *op.Operation, t op.DType, rows, cols int) *trial {
	attrs := o.Defaults()
	if o == op.Var {
		attrs = op.VarOpts{DDOF: rand.IntN(2)}.Attrs()
	}
	if rows > 0 {
		attrs = attrs.Rows()
	}
	var values []*op.Array
	for range o.Inputs() {
		x := normal(max(rows, 1), cols)
		if rand.IntN(2) == 0 { // equal elements, a mean that is not 0
			for i, v := range x.Data {
				x.Data[i] = math.Round(v) + 3
			}
		}
		values = append(values, x)
	}
	return newTrial(o, attrs, t, values...)
}

func TestReduce(t *testing.T) {
	t.Parallel()
	for _, o := range reduceOps {
		for _, typ := range rowTypes {
			t.Run(fmt.Sprint(o.Name(), "/", typ), func(t *testing.T) {
				t.Parallel()
				for _, n := range []int{1, 2, 3, 5, 7, 8, 9, 17, 64, 127, 255, 1000, 1024, 4099, 20011, 70001} {
					if sampled() {
						reduceTrial(o, typ, -1, n).must(t, h200)
					}
				}
				for _, s := range [][2]int{{1, 1}, {3, 1}, {300, 2}, {70, 3}, {50, 5}, {33, 8}, {40, 31}, {9, 100}, {5, 129}, {3, 1027}, {2, 4096}, {3, 4099}, {3, 6002}, {40, 513}} {
					if sampled() {
						reduceTrial(o, typ, s[0], s[1]).must(t, h200)
					}
				}
			})
		}
	}
}

// TestReduceSpecial reduces NaN and infinities.
func TestReduceSpecial(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	for _, o := range reduceOps {
		for _, typ := range rowTypes {
			for _, cols := range []int{1, 3, 37, 1029, 4100} {
				if !sampled() {
					continue
				}
				c := reduceTrial(o, typ, 7, cols)
				for _, x := range c.values {
					for i, v := range []float64{nan, inf, -inf, 0, math.Copysign(0, -1)} {
						x.Data[i*cols+rand.IntN(cols)] = v
						x.Data[i*cols+rand.IntN(cols)] = v
					}
					for i := range cols {
						x.Data[5*cols+i], x.Data[6*cols+i] = -inf, inf
						x.Data[4*cols+i] = math.Copysign(0, float64(rand.IntN(2))-0.5)
					}
				}
				c.must(t, h200)
			}
		}
	}
}

func TestPtxasReduce(t *testing.T) {
	testutil.Need(t, "ptxas")
	for _, target := range []ptx.Target{ptx.SM80, ptx.SM90a} {
		t.Run(target.String(), func(t *testing.T) {
			t.Parallel()
			d := h200
			d.Target = target
			for _, o := range reduceOps {
				for _, typ := range rowTypes[:1+rand.IntN(len(rowTypes))] {
					for _, s := range [][2]int{{-1, 1 << 20}, {1 << 20, 7}, {1 << 20, 64}, {1 << 14, 1001}, {1 << 14, 1 << 14}, {20, 60001}} {
						if rand.IntN(4) > 0 || !sampled() {
							continue
						}
						c := reduceTrial(o, typ, 1, 8)
						r, err := c.request()
						if err != nil {
							t.Fatal(err)
						}
						for i := range r.In {
							r.In[i].Shape = op.Shape{max(s[0], 1), s[1]}
						}
						r.Out[0].Shape = op.Shape{max(s[0], 1)}
						if p, err := planReduce(r, &d); err != nil {
							t.Error(err)
						} else {
							spills(t, p.Stages[0].Kernel, fmt.Sprint(p.Stages[0].Kernel.Name, " ", typ, " ", s, " ", p.Variant), target, false)
						}
					}
				}
			}
		})
	}
}
