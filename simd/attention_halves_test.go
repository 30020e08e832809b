package simd

import (
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// TestAttentionHalves compares keys and values of 16 bits, in pages and row by row, with
// the same ones as float32: the bits are the same.
func TestAttentionHalves(t *testing.T) {
	r := testutil.Rand(t)
	for _, half := range []op.DType{op.F16, op.BF16} {
		for range 40 {
			a := Attention{KVHeads: 1 + r.IntN(3), Queries: 1 + r.IntN(5), Keys: 1 + r.IntN(150), Dim: 1 + r.IntN(40), Causal: r.IntN(2) == 0}
			a.Heads, a.ValueDim = a.KVHeads*(1+r.IntN(3)), 1+r.IntN(40)
			a.fill()
			a.Half = half
			// The same order of products: rows one behind the other, as read leaves them.
			for _, x := range []struct {
				whole  []float32
				halves *[]uint16
			}{{a.K, &a.KHalves}, {a.V, &a.VHalves}} {
				for i, v := range x.whole {
					bits := op.F16FromFloat32(v)
					x.whole[i] = op.F16ToFloat32(bits)
					if half == op.BF16 {
						bits = op.BF16FromFloat32(v)
						x.whole[i] = op.BF16ToFloat32(bits)
					}
					*x.halves = append(*x.halves, bits)
				}
			}
			b := a
			b.Halves, b.Dst = Halves{}, make([]float32, len(a.Dst))
			a.K, a.V = nil, nil
			if r.IntN(2) == 0 {
				for _, w := range []*Attention{&a, &b} { // one page for each key, all heads of it side by side or not
					w.Page, w.Pages = 1, w.Keys
					w.KHead, w.KRow, w.KPage = w.Keys*w.Dim, w.Dim, w.Dim
					w.VHead, w.VRow, w.VPage = w.Keys*w.ValueDim, w.ValueDim, w.ValueDim
					for j := range w.Keys {
						w.Table = append(w.Table, int32(j))
					}
				}
			}
			a.Run(nil)
			b.Run(nil)
			for i := range b.Dst {
				if a.Dst[i] != b.Dst[i] {
					t.Fatalf("%v, %d heads of %d queries, %d keys of %d and %d, pages of %d: element %d is %v, of the same numbers as float32 %v",
						half, a.Heads, a.Queries, a.Keys, a.Dim, a.ValueDim, a.Page, i, a.Dst[i], b.Dst[i])
				}
			}
		}
	}
}
