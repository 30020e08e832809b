package simd

import (
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// TestGemmFrom compares batches whose matrices begin anywhere with products of one.
func TestGemmFrom(t *testing.T) {
	r := testutil.Rand(t)
	for _, s := range [][3]int{{1, 70, 70}, {70, 1, 90}, {3, 40, 64}, {40, 50, 30}, {5, 7, 3}, {2, 3, 0}} {
		const batch = 5
		g := Gemm{M: s[0], N: s[1], K: s[2], Batch: batch, CStride: s[0] * s[1]}
		g.A, g.B = make([]float32, 3*g.M*g.K+1), make([]float32, 3*g.K*g.N+1)
		for _, x := range [][]float32{g.A, g.B} {
			for i := range x {
				x[i] = r.Float32()
			}
		}
		g.ARow, g.ACol, g.BRow, g.BCol, g.CRow = g.K, 1, g.N, 1, g.N
		for range batch {
			g.AFrom, g.BFrom = append(g.AFrom, r.IntN(2*g.M*g.K+1)), append(g.BFrom, r.IntN(2*g.K*g.N+1))
		}
		g.C = make([]float32, batch*g.M*g.N)
		g.Run(nil)
		got := slices.Clone(g.C)
		clear(g.C)
		for i := range batch {
			one := g.Product(i)
			one.Run(nil)
		}
		if !slices.Equal(got, g.C) {
			t.Errorf("%v from %v and %v: the batch and its products differ", s, g.AFrom, g.BFrom)
		}
		g.AFrom[batch-1] = len(g.A)
		if g.M*g.K > 0 && !panics(func() { g.Run(nil) }) {
			t.Errorf("%v: a matrix behind the end is no mistake", s)
		}
	}
}

// panics reports whether f does.
func panics(f func()) (p bool) {
	defer func() { p = recover() != nil }()
	f()
	return false
}
