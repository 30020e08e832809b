package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/workers"
)

// exact returns the attention in float64, and for each element what its error
// is relative to.
func (a *Attention) exact() (want, magnitude []float64) {
	dv, scale := a.ValueDim, float64(a.Scale)
	if dv == 0 {
		dv = a.Dim
	}
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(a.Dim))
	}
	want, magnitude = make([]float64, a.Heads*a.Queries*dv), make([]float64, a.Heads*a.Queries*dv)
	for h := range a.Heads {
		g := h / (a.Heads / a.KVHeads)
		for i := range a.Queries {
			see := a.Keys
			if a.Causal {
				see = max(0, min(a.Keys, i+1+a.Keys-a.Queries))
			}
			scores, sum, top, size := make([]float64, see), 0.0, math.Inf(-1), 0.0
			for j := range scores {
				for d := range a.Dim {
					t := float64(a.Q[(h*a.Queries+i)*a.Dim+d]) * float64(a.K[(g*a.Keys+j)*a.Dim+d]) * scale
					scores[j] += t
					size = max(size, math.Abs(t)*float64(a.Dim))
				}
				top = max(top, scores[j])
			}
			for _, s := range scores {
				sum += math.Exp(s - top)
			}
			for j, s := range scores {
				for d := range dv {
					at := (h*a.Queries+i)*dv + d
					t := math.Exp(s-top) / sum * float64(a.V[(g*a.Keys+j)*dv+d])
					want[at] += t
					magnitude[at] += math.Abs(t) * (size + 4)
				}
			}
		}
	}
	return want, magnitude
}

func (a *Attention) fill() {
	dv := a.ValueDim
	if dv == 0 {
		dv = a.Dim
	}
	a.Q, a.K = make([]float32, a.Heads*a.Queries*a.Dim), make([]float32, a.KVHeads*a.Keys*a.Dim)
	a.V, a.Dst = make([]float32, a.KVHeads*a.Keys*dv), make([]float32, a.Heads*a.Queries*dv)
	uniform(a.Q, -2, 2)
	uniform(a.K, -2, 2)
	uniform(a.V, -1, 1)
	for i := range a.Dst {
		a.Dst[i] = float32(math.NaN())
	}
}

func (a *Attention) check(t *testing.T) {
	t.Helper()
	want, size := a.exact()
	for i, w := range want {
		if g := a.Dst[i]; !near(g, w, 8*0x1p-23*size[i]) {
			t.Fatalf("%d/%d heads, %d queries, %d keys, dim %d/%d, causal %v: element %d is %v, not %v",
				a.Heads, a.KVHeads, a.Queries, a.Keys, a.Dim, a.ValueDim, a.Causal, i, g, w)
		}
	}
}

func TestAttention(t *testing.T) {
	p := workers.New(0)
	defer p.Close()
	eachLevel(t, func(t *testing.T) {
		for _, a := range []Attention{
			{Heads: 1, KVHeads: 1, Queries: 1, Keys: 1, Dim: 1},
			{Heads: 2, KVHeads: 1, Queries: 3, Keys: 5, Dim: 7},
			{Heads: 4, KVHeads: 2, Queries: 1, Keys: 300, Dim: 16, ValueDim: 5},
			{Heads: 6, KVHeads: 2, Queries: 1, Keys: 2500, Dim: 32},
			{Heads: 2, KVHeads: 2, Queries: 16, Keys: 1100, Dim: 8, Scale: 1.5},
			{Heads: 2, KVHeads: 1, Queries: 67, Keys: 67, Dim: 24},
			{Heads: 2, KVHeads: 1, Queries: 70, Keys: 600, Dim: 33, ValueDim: 40},
			{Heads: 3, KVHeads: 3, Queries: 40, Keys: 9, Dim: 4},
		} {
			for _, causal := range []bool{false, true} {
				if testing.Short() && rand.IntN(2) == 0 {
					continue
				}
				a.Causal = causal
				a.fill()
				a.Run(nil)
				a.check(t)
				one := append([]float32(nil), a.Dst...)
				a.Run(p)
				if fmt.Sprint(a.Dst) != fmt.Sprint(one) {
					t.Fatalf("%d queries, %d keys: the result depends on the threads", a.Queries, a.Keys)
				}
			}
		}
	})
}

func TestAttentionOfNothing(t *testing.T) {
	a := Attention{Heads: 2, KVHeads: 1, Queries: 3, Keys: 0, Dim: 2, Q: make([]float32, 12), Dst: make([]float32, 12)}
	a.Dst[5] = 1
	a.Run(nil)
	for i, v := range a.Dst {
		if v != 0 {
			t.Errorf("no keys: element %d is %v", i, v)
		}
	}
	a = Attention{Heads: 0, KVHeads: 0, Queries: 3, Keys: 4, Dim: 2}
	a.Run(nil)
}

// TestAttentionHidesNaN checks that NaN at masked keys does not reach a query, and that NaN
// at visible keys does.
func TestAttentionHidesNaN(t *testing.T) {
	nan := float32(math.NaN())
	eachLevel(t, func(t *testing.T) {
		for _, keys := range []int{40, 300, 1500} {
			for _, queries := range []int{5, 40, 300} {
				if queries > keys || keys > 300 && !sampled(3) {
					continue
				}
				for _, inKeys := range []bool{false, true} {
					a := Attention{Heads: 2, KVHeads: 1, Queries: queries, Keys: keys, Dim: 8, Causal: true}
					a.fill()
					at := keys - queries/2 - 1 // seen by the later half
					if inKeys {
						a.K[at*8+3] = nan
					} else {
						a.V[at*8+3] = nan
					}
					a.Run(nil)
					for r := range 2 * queries {
						i := r % queries
						sees := i+1+keys-queries > at
						for d, v := range a.Dst[r*8:][:8] {
							want := sees && (inKeys || d == 3)
							if (v != v) != want {
								t.Fatalf("%d queries, %d keys, NaN in keys %v: query %d, element %d is %v", queries, keys, inKeys, i, d, v)
							}
						}
					}
				}
			}
		}
	})
}

// TestAttentionOfLargeScores checks scores that are far apart or infinite, which need the
// running maximum.
func TestAttentionOfLargeScores(t *testing.T) {
	inf := float32(math.Inf(1))
	eachLevel(t, func(t *testing.T) {
		for _, queries := range []int{1, 20} {
			a := Attention{Heads: 1, KVHeads: 1, Queries: queries, Keys: 1300, Dim: 4, Scale: 1}
			a.fill()
			for i := range a.Q {
				a.Q[i] = 1
			}
			// Ascending scores up to 4*1300, then the greatest at the end.
			for j := range a.Keys {
				for d := range 4 {
					a.K[j*4+d] = float32(j)
				}
			}
			a.Run(nil)
			a.check(t)
			// Scores of -Inf in the first blocks are no weight.
			for i := range 600 * 4 {
				a.K[i] = -inf
			}
			a.Run(nil)
			want := a.V[1299*4:]
			for i, v := range a.Dst {
				if math.Abs(float64(v-want[i%4])) > 0.05 {
					t.Fatalf("%d queries after -Inf: %v, not about %v", queries, v, want[i%4])
				}
			}
			for i := range a.K {
				a.K[i] = -inf
			}
			a.Run(nil)
			for _, v := range a.Dst {
				if v == v {
					t.Fatalf("%d queries, all scores -Inf: %v, not NaN", queries, v)
				}
			}
		}
	})
}

func BenchmarkAttention(b *testing.B) {
	for _, a := range []Attention{
		{Heads: 8, KVHeads: 8, Queries: 512, Keys: 512, Dim: 64, Causal: true},
		{Heads: 8, KVHeads: 8, Queries: 1024, Keys: 1024, Dim: 64},
		{Heads: 8, KVHeads: 2, Queries: 1, Keys: 4096, Dim: 128},
		{Heads: 8, KVHeads: 8, Queries: 1, Keys: 4096, Dim: 128},
	} {
		a.fill()
		for _, threads := range []int{1, 2} {
			p := workers.New(threads)
			b.Run(fmt.Sprintf("heads=%dof%d/tq=%d/tk=%d/d=%d/causal=%v/threads=%d", a.KVHeads, a.Heads, a.Queries, a.Keys, a.Dim, a.Causal, threads), func(b *testing.B) {
				for b.Loop() {
					a.Run(p)
				}
				flops := 4 * float64(a.Heads*a.Queries*a.Keys*a.Dim)
				b.ReportMetric(flops*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "gflop/s")
				b.ReportMetric(8*float64(a.KVHeads*a.Keys*a.Dim)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GB/s")
			})
			p.Close()
		}
	}
}
