package batch_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// TestColumnExponentials compares logsumexp and softmax of the middle axis of arrays with float64: few and many columns, short and
// long axes, columns with infinities and NaN.
func TestColumnExponentials(t *testing.T) {
	dev := open()
	defer dev.Close()
	r := testutil.Rand(t)
	for _, s := range [][3]int{{1, 1000, 130}, {3, 251, 97}, {4, 3, 3000}, {2, 300, 3}, {1, 4001, 5}, {9, 5, 20}, {1, 9000, 17}, {1, 1, 40}, {1, 2300, 64}, {20, 3, 4}} {
		outer, cols, inner := s[0], s[1], s[2]
		n := outer * cols * inner
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64() * 10)
		}
		for j, v := range []float64{math.Inf(1), math.Inf(-1), math.NaN()} { // one element of some columns, all of another
			x[cols/2*inner+j%inner] = float32(v)
		}
		for i := range cols {
			x[i*inner+inner-1] = float32(math.Inf(-1))
		}
		b := batch.New(dev)
		v := batch.Upload(b, x, outer, cols, inner)
		values := []batch.Value{b.LogSumExp(v, op.Axes(1)), b.Softmax(v, op.Axes(1)), b.LogSoftmax(v, op.Axes(1))}
		values = append(values, b.Neg(b.Softmax(b.Scale(v, 1), op.Axes(1)))) // with neighbours that are elementwise
		if err := b.Execute(t.Context(), values...); err != nil {
			t.Fatal(s, err)
		}
		var got [4][]float32
		for i, v := range values {
			var err error
			if got[i], err = batch.Read[float32](t.Context(), b, v); err != nil {
				t.Fatal(s, err)
			}
		}
		for c := range outer * inner {
			o, j := c/inner, c%inner
			top, sum := math.Inf(-1), 0.0
			for i := range cols {
				top = math.Max(top, float64(x[(o*cols+i)*inner+j]))
			}
			from := top
			if math.IsInf(from, 0) {
				from = 0
			}
			for i := range cols {
				sum += math.Exp(float64(x[(o*cols+i)*inner+j]) - from)
			}
			closeTo(t, fmt.Sprint("logsumexp ", s, c), got[0][c], from+math.Log(sum), 1e-5)
			if math.IsInf(top, 0) {
				top = math.NaN() // so are all elements of the softmax
			}
			for i := range cols {
				at := (o*cols+i)*inner + j
				d := float64(x[at]) - top
				closeTo(t, fmt.Sprint("softmax ", s, at), got[1][at], math.Exp(d)/sum, 1e-6)
				closeTo(t, fmt.Sprint("log_softmax ", s, at), got[2][at], d-math.Log(sum), 2e-5)
				closeTo(t, fmt.Sprint("-softmax ", s, at), got[3][at], -math.Exp(d)/sum, 1e-6)
			}
		}
	}
}

// closeTo compares a number with the expected one, with a tolerance relative to 1 + |want|.
func closeTo(t *testing.T, what string, got float32, want, tolerance float64) {
	t.Helper()
	g := float64(got)
	if math.IsNaN(want) && math.IsNaN(g) || g == want {
		return
	}
	if !(math.Abs(g-want) <= tolerance*(1+math.Abs(want))) {
		t.Fatalf("%s: %v, not %v", what, got, want)
	}
}
