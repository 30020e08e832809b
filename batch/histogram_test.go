package batch_test

import (
	"math"
	"sort"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/internal/testutil"
)

// TestHistogramAtEdges counts the edges themselves and the numbers next to them, in bins of all widths,
// down to those that are narrower than the distance of two numbers.
func TestHistogramAtEdges(t *testing.T) {
	dev := open()
	defer dev.Close()
	rnd := testutil.Rand(t)
	for _, c := range []struct {
		bins   int
		lo, hi float32
	}{{1, 0, 1}, {7, -3, 3}, {100, -3, 3}, {1000, 0.1, 0.7}, {4096, -1e30, 1e30}, {50, 1e6, 1e6 + 1}, {999, 1e5, 1e5 + 100}, {3, 1e-42, 4e-42}, {10, -3e38, 3e38}, {10, 1e-20, 3e-20}, {100_000, 0, 1}} {
		b := batch.New(dev)
		_, e := b.Histogram(batch.Upload(b, []float32{0}, 1), c.bins, c.lo, c.hi)
		if err := b.Execute(t.Context(), e); err != nil {
			t.Fatal(c, err)
		}
		edges, err := batch.Read[float32](t.Context(), b, e)
		if err != nil {
			t.Fatal(c, err)
		}
		x := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32, -math.MaxFloat32}
		for range 3000 {
			at := edges[rnd.IntN(len(edges))]
			x = append(x, at, math.Nextafter32(at, float32(math.Inf(1))), math.Nextafter32(at, float32(math.Inf(-1))),
				float32(float64(c.lo)+(float64(c.hi)-float64(c.lo))*(1.2*rnd.Float64()-0.1)))
		}
		want := make([]int32, c.bins)
		for _, v := range x {
			switch {
			case v == c.hi:
				want[c.bins-1]++
			case v >= c.lo && v < c.hi:
				want[sort.Search(len(edges), func(i int) bool { return edges[i] > v })-1]++
			}
		}
		b = batch.New(dev)
		counts, _ := b.Histogram(batch.Upload(b, x, len(x)), c.bins, c.lo, c.hi)
		if err := b.Execute(t.Context(), counts); err != nil {
			t.Fatal(c, err)
		}
		got, err := batch.Read[int32](t.Context(), b, counts)
		if err != nil {
			t.Fatal(c, err)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%+v: bin %d, from %v to %v, has %d elements, want %d", c, i, edges[i], edges[i+1], got[i], want[i])
				break
			}
		}
	}
}
