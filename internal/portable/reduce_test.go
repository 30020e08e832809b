package portable

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/op"
)

var reductions = []*op.Operation{op.Sum, op.Dot, op.Mean, op.Var, op.Min, op.Max, op.ArgMin, op.ArgMax, op.NormL1, op.NormL2, op.NormLinf, op.Prod, op.LogSumExp, op.CountNonzero}

func reductionTrial(o *op.Operation, rows bool, values ...*op.Array) *trial {
	c := &trial{o: o, attrs: o.Defaults()}
	if rows {
		c.attrs = c.attrs.Rows()
	}
	fewest, _ := o.Arity()
	for i := range fewest {
		c.values = append(c.values, values[min(i, len(values)-1)])
		c.types = append(c.types, op.F32)
	}
	return c
}

func TestReductions(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, o := range reductions {
		t.Run(o.Name(), func(t *testing.T) {
			for _, shape := range [][]int{{1}, {2}, {3, 5}, {16}, {17, 16}, {5, 17}, {3, 255}, {2, 257}, {1031}, {2, 4096}, {8192}, {2, 8191}, {12289}} {
				reductionTrial(o, false, normal(rnd, shape...), normal(rnd, shape...)).everyVariant(t, true)
				reductionTrial(o, true, normal(rnd, shape...), normal(rnd, shape...)).everyVariant(t, true)
			}
		})
	}
}

func TestReductionsOfSpecialValues(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, o := range reductions {
		for _, vs := range [][]float64{{missing}, {inf}, {-inf}, {inf, -inf}, {missing, inf}, {0, 1 / -inf}, {1e30, 1e38}, {1e-40}} {
			for _, shape := range [][]int{{4}, {3, 40}, {300}, {9000}} {
				x := with(rnd, normal(rnd, shape...), vs...)
				t.Run(fmt.Sprint(o, vs, shape), func(t *testing.T) {
					reductionTrial(o, false, x, normal(rnd, shape...)).everyVariant(t, false)
				})
			}
		}
	}
}
