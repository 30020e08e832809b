package simd

import (
	"math"
	"testing"
)

// TestAttentionOfFewQueries compares keys and values whose heads are interleaved, as in a cache, with float64.
func TestAttentionOfFewQueries(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, a := range []Attention{
			{Heads: 1, KVHeads: 1, Queries: 1, Keys: 1, Dim: 1},
			{Heads: 6, KVHeads: 2, Queries: 1, Keys: 131, Dim: 64},
			{Heads: 9, KVHeads: 3, Queries: 1, Keys: 64, Dim: 40, ValueDim: 24},
			{Heads: 5, KVHeads: 1, Queries: 3, Keys: 77, Dim: 19, ValueDim: 37},
			{Heads: 8, KVHeads: 1, Queries: 2, Keys: 1030, Dim: 32},
			{Heads: 17, KVHeads: 1, Queries: 1, Keys: 70, Dim: 16}, // more than few
		} {
			a.fill()
			dv := a.ValueDim
			if dv == 0 {
				dv = a.Dim
			}
			s := a
			s.K, s.KHead, s.KRow = interleaved(a.K, a.KVHeads, a.Keys, a.Dim)
			s.V, s.VHead, s.VRow = interleaved(a.V, a.KVHeads, a.Keys, dv)
			s.Run(nil)
			a.check(t) // Dst is shared
		}
	})
}

// interleaved returns x, which is [heads, rows, dim], as [rows, heads, dim] with a NaN behind each row, and its strides.
func interleaved(x []float32, heads, rows, dim int) (y []float32, head, row int) {
	row = heads*dim + 1
	y = make([]float32, rows*row)
	for i := range y {
		y[i] = float32(math.NaN())
	}
	for h := range heads {
		for r := range rows {
			copy(y[r*row+h*dim:][:dim], x[(h*rows+r)*dim:])
		}
	}
	return y, dim, row
}
