package batch_test

import (
	"slices"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// TestColumnsOfProducts adds the products of two arrays along the middle axis, of few and of many rows and arrays. All sums are exact.
func TestColumnsOfProducts(t *testing.T) {
	dev, err := device.Open(t.Context(), device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	r := testutil.Rand(t)
	for _, s := range []op.Shape{{1, 1, 1}, {3, 4, 16}, {50, 16, 9}, {50, 17, 9}, {7, 1, 40}, {1, 3000, 33}, {2, 5, 3000}, {200, 3, 7}} {
		outer, rows, n := s[0], s[1], s[2]
		x, y, want := make([]float32, outer*rows*n), make([]float32, outer*rows*n), make([]float32, outer*n)
		for i := range x {
			x[i], y[i] = float32(r.IntN(9)-4), float32(r.IntN(9)-4)
			want[i/n/rows*n+i%n] += x[i] * y[i]
		}
		b := batch.New(dev)
		sums := b.Einsum("abc,abc->ac", b.Upload(x, s...), b.Upload(y, s...))
		if err := b.Execute(t.Context(), sums); err != nil {
			t.Fatal(err)
		}
		if got, err := batch.Read[float32](t.Context(), b, sums); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v: other sums, error %v", s, err)
		}
	}
}
