//go:build amd64 && !noasm

package simd

import (
	"math"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// TestMapRows compares the kernels for rows with the kernels of the reference for each row, for all lengths up to a few vectors.
func TestMapRows(t *testing.T) {
	r := testutil.Rand(t)
	for _, l := range Supported() {
		for _, name := range MapNames() {
			f, reference := mapRowsAt(l, name), MapAt(Generic, name)
			if f == nil {
				continue
			}
			single := len(name) > 3 && name[len(name)-3:] == ".vs"
			for n := 1; n < 70; n++ {
				rows, ds, xs, ys := 1+r.IntN(5), n+r.IntN(3), r.IntN(2)*(n+r.IntN(3)), r.IntN(2)*(n+r.IntN(3))
				x, y := make([]float32, n+rows*(n+3)), make([]float32, n+rows*(n+3))
				for i := range x {
					x[i], y[i] = float32(r.NormFloat64()), float32(r.NormFloat64())
				}
				got := make([]float32, rows*(n+3))
				for i := range got {
					got[i] = 77
				}
				want := append([]float32(nil), got...)
				for k := range rows {
					if p := &y[k*ys]; single {
						reference(&want[k*ds], &x[k*xs], nil, nil, n, p)
					} else {
						reference(&want[k*ds], &x[k*xs], p, nil, n, nil)
					}
				}
				f(&got[0], &x[0], &y[0], n, rows, 4*ds, 4*xs, 4*ys)
				for i := range got {
					if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
						t.Fatalf("%v %s, %d rows of %d: element %d is %v, not %v", l, name, rows, n, i, got[i], want[i])
					}
				}
			}
		}
	}
}
