package cpu

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// TestSoftmaxColumnsThreads requires the same softmax of columns for every number of threads, although threads get fewer columns at a
// time if there are more of them.
func TestSoftmaxColumnsThreads(t *testing.T) {
	if !expsColumns() {
		return
	}
	r := testutil.Rand(t)
	swap, err := op.PermuteTo(0, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []op.Shape{{1, 1000, 64}, {1, 3000, 70}, {1, 40, 500}} {
		n := size(s)
		made := op.Shape{s[0], s[2], s[1]}
		l, ok := op.Permute.Layout(&swap, op.RowMajor(n), s, made, op.F32)
		if !ok {
			t.Fatal(s)
		}
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		for _, o := range []*op.Operation{op.Softmax, op.LogSoftmax} {
			var first []float32
			for _, threads := range []int{1, 2, 4} {
				c := &scanColumns{d: open(t, threads), from: &l, to: &l, typ: op.F32}
				if err := c.configure(o, nil, []op.Shape{made}); err != nil {
					t.Fatal(err)
				}
				y := make([]float32, n)
				if err := c.compute(t.Context(), []unsafe.Pointer{unsafe.Pointer(&x[0])}, []unsafe.Pointer{unsafe.Pointer(&y[0])}); err != nil {
					t.Fatal(err)
				}
				if first == nil {
					first = y
				}
				if !slices.Equal(first, y) {
					t.Errorf("%s of %v: results with %d threads differ from those with 1", o.Name(), s, threads)
				}
			}
		}
	}
}
