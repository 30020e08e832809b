package portable

import (
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// TestFactors uses matrices of the orders of each kernel. Some are singular, and some have zeros.
func TestFactors(t *testing.T) {
	rnd := testutil.Rand(t)
	one := func(o *op.Operation, a op.Attrs, xs ...*op.Array) {
		c := &trial{o: o, attrs: a, values: xs}
		for range xs {
			c.types = append(c.types, op.F32)
		}
		c.everyVariant(t, len(xs[0].Data) < 600)
	}
	for _, s := range [][]int{{1, 1, 1}, {2, 3, 3}, {3, 7, 4}, {1, 4, 9}, {2, 16, 16}, {1, 20, 31}, {1, 33, 33}, {1, 60, 50}} {
		x := normal(rnd, s...)
		few := normal(rnd, s...)
		for i := range few.Data {
			few.Data[i] = float64(rnd.IntN(3) - 1)
		}
		for _, x := range []*op.Array{x, few} {
			for _, o := range []*op.Operation{op.LU, op.QR, op.SVD} {
				one(o, op.Attrs{}, x)
			}
		}
		n := s[1]
		square, right := normal(rnd, s[0], n, n), normal(rnd, s[0], n, s[2])
		one(op.Solve, op.Attrs{}, square, right)
		one(op.Eigh, op.Attrs{}, square)
		for i := range square.Data {
			square.Data[i] /= float64(n)
			if i/n%n == i%n {
				square.Data[i] += 2
			}
		}
		one(op.Cholesky, op.Attrs{}, square)
		for k := range 8 {
			one(op.SolveTriangular, op.SolveTriangularOpts{Upper: k&1 != 0, Trans: k&2 != 0, Unit: k&4 != 0}.Attrs(), square, right)
		}
	}
}
