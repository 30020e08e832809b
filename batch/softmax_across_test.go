package batch_test

import (
	"math"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// TestSoftmaxAcross compares the softmax along axes that are not the last, and its logarithm, with
// float64: one axis and two, with elements that are infinite.
func TestSoftmaxAcross(t *testing.T) {
	dev := open()
	defer dev.Close()
	rnd := testutil.Rand(t)
	for _, c := range []struct {
		shape, axes []int
	}{{[]int{3, 1001}, []int{0}}, {[]int{5, 7, 33}, []int{1}}, {[]int{5, 7, 33}, []int{0, 1}}, {[]int{2, 3, 4, 9}, []int{-3, -2}}, {[]int{6, 1, 2}, []int{1}}, {[]int{3, 5, 4}, []int{0, 2}}} {
		n, rank := 1, len(c.shape)
		for _, e := range c.shape {
			n *= e
		}
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(rnd.NormFloat64() * 20)
		}
		x[0], x[n-1] = float32(math.Inf(-1)), float32(math.Inf(1))
		b := batch.New(dev)
		v := batch.Upload(b, x, c.shape...)
		soft, logs := b.Softmax(v, op.Axes(c.axes...)), b.LogSoftmax(v, op.Axes(c.axes...))
		if err := b.Execute(t.Context(), soft, logs); err != nil {
			t.Fatal(c, err)
		}
		gotSoft, err := batch.Read[float32](t.Context(), b, soft)
		if err != nil {
			t.Fatal(err)
		}
		gotLogs, err := batch.Read[float32](t.Context(), b, logs)
		if err != nil {
			t.Fatal(err)
		}
		// group identifies the elements that are normalised together.
		group := func(i int) (g int) {
			along := make([]bool, rank)
			for _, a := range c.axes {
				along[(a+rank)%rank] = true
			}
			for a, stride := rank-1, 1; a >= 0; a-- {
				if !along[a] {
					g += i % c.shape[a] * stride
				}
				stride *= c.shape[a]
				i /= c.shape[a]
			}
			return g
		}
		top, sum := map[int]float64{}, map[int]float64{}
		for i, v := range x {
			if m, ok := top[group(i)]; !ok || float64(v) > m {
				top[group(i)] = float64(v)
			}
		}
		for i, v := range x {
			sum[group(i)] += math.Exp(float64(v) - top[group(i)])
		}
		for i, v := range x {
			d := float64(v) - top[group(i)]
			for _, r := range []struct{ got, want float64 }{
				{float64(gotSoft[i]), math.Exp(d) / sum[group(i)]}, {float64(gotLogs[i]), d - math.Log(sum[group(i)])},
			} {
				if bad := math.Abs(r.got-r.want) > 1e-5*(1+math.Abs(r.want)); bad || math.IsNaN(r.got) != math.IsNaN(r.want) {
					t.Fatalf("%v along %v, element %d: %v, want %v", c.shape, c.axes, i, r.got, r.want)
				}
			}
		}
	}
}
