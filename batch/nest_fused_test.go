package batch_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// TestNestsBesideRows compares row operations and products whose results are combined with numbers that broadcast in short rows.
func TestNestsBesideRows(t *testing.T) {
	dev := open()
	defer dev.Close()
	r := testutil.Rand(t)
	for _, s := range [][2]int{{1000, 32}, {3000, 7}, {400, 40}, {200, 250}} {
		rows, cols := s[0], s[1]
		x, y, z := make([]float32, rows*cols), make([]float32, rows), make([]float32, rows/2*cols)
		for _, x := range [][]float32{x, y, z} {
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
		}
		var got [7][]float32
		for i, f := range []func(b *batch.Batch, v, w, u batch.Value) batch.Value{
			func(b *batch.Batch, v, w, u batch.Value) batch.Value { return b.Sub(w, b.Softmax(v)) },
			func(b *batch.Batch, v, w, u batch.Value) batch.Value { return b.Softmax(b.Sub(v, w)) },
			func(b *batch.Batch, v, w, u batch.Value) batch.Value { return b.Sub(b.Softmax(v), u) },
			func(b *batch.Batch, v, w, u batch.Value) batch.Value { return b.Softmax(b.Sub(u, v)) },
			func(b *batch.Batch, v, w, u batch.Value) batch.Value { return b.Sum(b.Sub(v, w), op.Axes(-1)) },
			func(b *batch.Batch, v, w, u batch.Value) batch.Value { return b.Sum(b.Sub(u, v), op.Axes(-1)) },
			func(b *batch.Batch, v, w, u batch.Value) batch.Value { // a product of one term
				return b.Sub(w, b.MatMul(b.Reshape(w, rows/2, 2, 1), b.Slice(b.Slice(v, 0, 0, 1, 1), 1, 0, 1, 1), batch.Value{}))
			},
		} {
			b := batch.New(dev)
			y := f(b, batch.Upload(b, x, rows/2, 2, cols), batch.Upload(b, y, rows/2, 2, 1), batch.Upload(b, z, rows/2, 1, cols))
			if err := b.Execute(t.Context(), y); err != nil {
				t.Fatal(s, err)
			}
			var err error
			if got[i], err = batch.Read[float32](t.Context(), b, y); err != nil {
				t.Fatal(s, err)
			}
		}
		for row := range rows {
			exps := func(f func(i int) float64) (sum float64) {
				for i := range cols {
					sum += math.Exp(f(i))
				}
				return sum
			}
			X := func(i int) float64 { return float64(x[row*cols+i]) }
			U := func(i int) float64 { return float64(z[row/2*cols+i]) }
			W := float64(y[row])
			a, c, e := exps(X), exps(func(i int) float64 { return X(i) - W }), exps(func(i int) float64 { return U(i) - X(i) })
			var sw, su float64
			for i := range cols {
				sw += X(i) - W
				su += U(i) - X(i)
				at := row*cols + i
				closeTo(t, fmt.Sprint("w-softmax ", s, at), got[0][at], W-math.Exp(X(i))/a, 1e-5)
				closeTo(t, fmt.Sprint("softmax(x-w) ", s, at), got[1][at], math.Exp(X(i)-W)/c, 1e-5)
				closeTo(t, fmt.Sprint("softmax-u ", s, at), got[2][at], math.Exp(X(i))/a-U(i), 1e-5)
				closeTo(t, fmt.Sprint("w-product ", s, at), got[6][at], W-W*float64(x[i]), 1e-5)
				closeTo(t, fmt.Sprint("softmax(u-x) ", s, at), got[3][at], math.Exp(U(i)-X(i))/e, 1e-5)
			}
			closeTo(t, fmt.Sprint("sum(x-w) ", s, row), got[4][row], sw, 1e-4)
			closeTo(t, fmt.Sprint("sum(u-x) ", s, row), got[5][row], su, 1e-4)
		}
	}
}
