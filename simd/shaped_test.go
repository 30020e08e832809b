package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/rayo-go/rayo/internal/memory"
	"github.com/rayo-go/rayo/internal/workers"
)

func TestTranspose(t *testing.T) {
	p := workers.New(0)
	defer p.Close()
	eachLevel(t, func(t *testing.T) {
		sizes := []int{0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 131, 1000}
		for _, rows := range sizes {
			for _, cols := range sizes {
				x, xok := guarded(t, rows*cols, 1)
				dst, ok := guarded(t, rows*cols, 3)
				for i := range x {
					x[i] = float32(i)
				}
				Transpose(p, dst, x, rows, cols)
				xok()
				ok()
				for i := range rows {
					for j := range cols {
						if dst[j*rows+i] != x[i*cols+j] {
							t.Fatalf("%dx%d: element %d, %d is %v", rows, cols, j, i, dst[j*rows+i])
						}
					}
				}
			}
		}
	})
}

func TestGather(t *testing.T) {
	p := workers.New(0)
	defer p.Close()
	for _, cols := range []int{0, 1, 3, 64, 1000} {
		for _, n := range []int{0, 1, 5, 3000} {
			const rows = 17
			x := make([]float32, rows*cols)
			uniform(x, -1, 1)
			dst, ok := guarded(t, n*cols, 1)
			ids := make([]int32, n)
			for i := range ids {
				ids[i] = int32(rand.IntN(rows+6) - 3)
			}
			if n > 3 {
				ids[1], ids[2] = math.MinInt32, math.MaxInt32
			}
			Gather(p, dst, x, ids, rows, cols)
			ok()
			for i, id := range ids {
				for j := range cols {
					g := dst[i*cols+j]
					if inside := id >= 0 && id < rows; inside && g != x[int(id)*cols+j] || !inside && g == g {
						t.Fatalf("row %d of %d: id %d, element %d is %v", i, n, id, j, g)
					}
				}
			}
		}
	}
}

func TestTopK(t *testing.T) {
	p := workers.New(0)
	defer p.Close()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	before := func(a, b float32) bool { return a > b || a != a && b == b }
	eachLevel(t, func(t *testing.T) {
		for _, cols := range []int{1, 2, 16, 17, 100, 129, 1000, 5000} {
			for _, k := range []int{0, 1, 2, 5, 10, 64, 300, cols / 2, cols} {
				if k > cols {
					continue
				}
				for kind := range 4 {
					const rows = 3
					x := make([]float32, rows*cols)
					for i := range x {
						switch kind {
						case 0:
							x[i] = rand.Float32() - 0.5
						case 1: // many equal
							x[i] = float32(rand.IntN(7) - 3)
						case 2:
							x[i] = []float32{nan, -nan, inf, -inf, 0, float32(math.Copysign(0, -1)), 1}[rand.IntN(7)]
						case 3: // ascending: the heap changes at every element
							x[i] = float32(i)
						}
					}
					values, ok := guarded(t, rows*k, 0)
					index := make([]int32, rows*k)
					TopK(p, values, index, x, rows, cols, k)
					ok()
					for r := range rows {
						row := x[r*cols:][:cols]
						want := make([]int, cols)
						for i := range want {
							want[i] = i
						}
						sort.SliceStable(want, func(a, b int) bool { return before(row[want[a]], row[want[b]]) })
						for j, w := range want[:k] {
							if got := int(index[r*k+j]); got != w {
								t.Fatalf("kind %d, %d of %d: place %d is column %d (%v), not %d (%v)", kind, k, cols, j, got, row[got], w, row[w])
							}
							if g, w := values[r*k+j], row[w]; math.Float32bits(g) != math.Float32bits(w) {
								t.Fatalf("kind %d, %d of %d: place %d has value %v, not %v", kind, k, cols, j, g, w)
							}
						}
					}
				}
			}
		}
	})
	TopK(nil, nil, nil, make([]float32, 6), 2, 3, 2)
}

func TestRope(t *testing.T) { eachLevel(t, testRope) }

func testRope(t *testing.T) {
	p := workers.New(0)
	defer p.Close()
	at := make([]int32, 70)
	for i := range at {
		at[i] = int32(rand.IntN(100000) - 10)
	}
	for _, r := range []Rope{
		{Positions: 1, Dim: 2},
		{Positions: 70, Dim: 64, Offset: 1000},
		{Outer: 3, Positions: 5, Inner: 2, Dim: 7},
		{Positions: 70, Inner: 4, Dim: 32, At: at, Base: 500000},
		{Outer: 2, Positions: 9, Dim: 16, Rotary: 6, Offset: 1 << 20},
		{Positions: 3, Dim: 1},
		{Positions: 0, Dim: 8},
	} {
		for _, half := range []bool{false, true} {
			r.Half = half
			outer, inner := max(1, r.Outer), max(1, r.Inner)
			n := outer * r.Positions * inner * r.Dim
			x, xok := guarded(t, n, 0)
			uniform(x, -3, 3)
			dst, ok := guarded(t, n, 1)
			r.Run(p, dst, x)
			ok()
			xok()
			rotary, base := r.Rotary, r.Base
			if rotary == 0 {
				rotary = r.Dim &^ 1
			}
			if base == 0 {
				base = 10000
			}
			for v := range n / r.Dim {
				pos := v / inner % r.Positions
				where := float64(r.Offset + pos)
				if r.At != nil {
					where = float64(r.At[pos])
				}
				in, out := x[v*r.Dim:][:r.Dim], dst[v*r.Dim:][:r.Dim]
				for i := range rotary / 2 {
					a, b := 2*i, 2*i+1
					if half {
						a, b = i, i+rotary/2
					}
					s, c := math.Sincos(where * math.Pow(base, -2*float64(i)/float64(rotary)))
					u, w := float64(in[a]), float64(in[b])
					tolerance := 0x1p-23 * math.Hypot(u, w)
					if !near(out[a], u*c-w*s, tolerance) || !near(out[b], u*s+w*c, tolerance) {
						t.Fatalf("%+v: vector %d, pair %d: (%v, %v), not (%v, %v)", r, v, i, out[a], out[b], u*c-w*s, u*s+w*c)
					}
				}
				for i := rotary; i < r.Dim; i++ {
					if out[i] != in[i] {
						t.Fatalf("%+v: element %d, which does not turn, is %v", r, i, out[i])
					}
				}
			}
			r.Run(p, x, x)
			if fmt.Sprint(x) != fmt.Sprint(dst) {
				t.Fatalf("%+v in place differs", r)
			}
		}
	}
}

func BenchmarkTranspose(b *testing.B) {
	for _, n := range []int{64, 256, 1000, 1024, 4096} {
		x, _ := memory.Floats(n * n)
		dst, _ := memory.Floats(n * n)
		copy(dst, x)
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			b.SetBytes(int64(8 * n * n))
			for b.Loop() {
				Transpose(nil, dst, x, n, n)
			}
		})
		b.Run(fmt.Sprintf("copy/n=%d", n), func(b *testing.B) {
			b.SetBytes(int64(8 * n * n))
			for b.Loop() {
				copy(dst, x)
			}
		})
	}
}

func BenchmarkTopK(b *testing.B) {
	x := make([]float32, 1_000_000)
	uniform(x, 0, 1)
	for _, k := range []int{1, 10, 100, 1000, 100_000} {
		values, index := make([]float32, k), make([]int32, k)
		b.Run(fmt.Sprintf("k=%d", k), func(b *testing.B) {
			for b.Loop() {
				TopK(nil, values, index, x, 1, len(x), k)
			}
		})
	}
}

func BenchmarkRope(b *testing.B) {
	for _, positions := range []int{1, 512} {
		x := make([]float32, positions*32*128)
		for _, half := range []bool{false, true} {
			b.Run(fmt.Sprintf("positions=%d/heads=32/dim=128/half=%v", positions, half), func(b *testing.B) {
				r := Rope{Positions: positions, Inner: 32, Dim: 128, Half: half}
				for b.Loop() {
					r.Run(nil, x, x)
				}
			})
		}
	}
}
