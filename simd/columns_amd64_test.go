//go:build amd64 && !noasm

package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// TestFoldColumns compares kernels with loops. Elements around the results must not change.
func TestFoldColumns(t *testing.T) {
	if active < AVX2 {
		return // RAYO_SIMD names a level without such kernels
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := rand.New(rand.NewPCG(seed, 5))
	float := func(f func(a, b float32) float32) func(a, b uint32) uint32 {
		return func(a, b uint32) uint32 {
			return math.Float32bits(f(math.Float32frombits(a), math.Float32frombits(b)))
		}
	}
	for name, f := range map[string]func(a, b uint32) uint32{
		"f32.add":     float(func(a, b float32) float32 { return a + b }),
		"f32.mul":     float(func(a, b float32) float32 { return a * b }),
		"f32.maximum": float(func(a, b float32) float32 { return max(a, b) }),
		"f32.minimum": float(func(a, b float32) float32 { return min(a, b) }),
		"i32.add":     func(a, b uint32) uint32 { return a + b },
		"u32.mul":     func(a, b uint32) uint32 { return a * b },
		"i32.maximum": func(a, b uint32) uint32 { return uint32(max(int32(a), int32(b))) },
		"i32.minimum": func(a, b uint32) uint32 { return uint32(min(int32(a), int32(b))) },
		"u32.maximum": func(a, b uint32) uint32 { return max(a, b) },
		"u32.minimum": func(a, b uint32) uint32 { return min(a, b) },
		"i32.zeros":   func(a, b uint32) uint32 { return a - (1 - min(b, 1)) },
		"f32.zeros":   func(a, b uint32) uint32 { return a - (1 - min(b<<1, 1)) },
		"u32.any":     func(a, b uint32) uint32 { return max(a, min(b, 1)) },
		"f32.any":     func(a, b uint32) uint32 { return max(a, min(b<<1, 1)) },
		"u32.all":     func(a, b uint32) uint32 { return min(a, b, 1) },
		"f32.all":     func(a, b uint32) uint32 { return min(a, b<<1, 1) },
	} {
		for n := 1; n < 36; n++ {
			rows, stride := g.IntN(11), n+g.IntN(3)
			dst, x := make([]uint32, n+16), make([]uint32, rows*stride+n)
			for _, s := range [][]uint32{dst, x} {
				for i := range s {
					s[i] = [4]uint32{math.Float32bits(float32(g.IntN(9) + 1)), 0, 1, 1 << 31}[g.IntN(4)]
				}
			}
			if name == "f32.maximum" || name == "f32.minimum" {
				for i := range x {
					x[i] = math.Float32bits([4]float32{1, -2, 3, float32(math.NaN())}[min(3, g.IntN(20))])
				}
				for i := range dst {
					dst[i] = math.Float32bits(2)
				}
			}
			want := append([]uint32(nil), dst...)
			for r := range rows {
				for j := range n {
					want[8+j] = f(want[8+j], x[r*stride+j])
				}
			}
			const arrays = 3
			if many := FoldArrays(name); n >= 8 && rows > 0 {
				start := dst[8]
				y, got := make([]uint32, arrays*rows*n), make([]uint32, arrays*n+2)
				for i := range y {
					y[i] = x[g.IntN(len(x))]
				}
				got[0], got[len(got)-1] = 77, 77
				many(&got[1], &y[0], n, rows, arrays, start)
				for i, v := range got[1:][:arrays*n] {
					w := start
					for r := range rows {
						w = f(w, y[i/n*rows*n+r*n+i%n])
					}
					if a, b := math.Float32frombits(v), math.Float32frombits(w); v != w && (name[0] != 'f' || a == a || b == b) {
						t.Fatalf("%s of %d arrays of %d rows of %d: element %d is %#x, want %#x", name, arrays, rows, n, i, v, w)
					}
				}
				if got[0] != 77 || got[len(got)-1] != 77 {
					t.Fatalf("%s of %d arrays of %d rows of %d writes beyond its results", name, arrays, rows, n)
				}
			}
			FoldColumns(name)(&dst[8], &x[0], n, rows, stride)
			for i := range dst {
				a, b := math.Float32frombits(dst[i]), math.Float32frombits(want[i])
				if dst[i] != want[i] && (name[0] != 'f' || a == a || b == b) {
					t.Fatalf("%s of %d rows of %d: element %d is %#x, want %#x", name, rows, n, i-8, dst[i], want[i])
				}
			}
		}
	}
}

// TestColumnProducts compares sums of products with a loop. Elements around the results must not change.
func TestColumnProducts(t *testing.T) {
	if Active() < AVX2 {
		return
	}
	r := testutil.Rand(t)
	for range 300 {
		n, rows := 1+r.IntN(40), 1+r.IntN(9)
		stride := n + r.IntN(5)
		x, y, dst := make([]float32, rows*stride), make([]float32, rows*stride), make([]float32, n+16)
		for i := range x {
			x[i], y[i] = r.Float32()-0.5, r.Float32()-0.5
		}
		for i := range dst {
			dst[i] = r.Float32()
		}
		want := slices.Clone(dst)
		for i := range n {
			sum := float64(dst[8+i])
			for k := range rows {
				sum += float64(x[k*stride+i]) * float64(y[k*stride+i])
			}
			want[8+i] = float32(sum)
		}
		ColumnProducts(&dst[8], &x[0], &y[0], n, rows, stride)
		for i, v := range dst {
			if d := math.Abs(float64(v - want[i])); d > 1e-6 || d > 0 && (i < 8 || i >= 8+n) {
				t.Fatalf("%d rows of %d, stride %d: element %d is %v, not %v", rows, n, stride, i-8, v, want[i])
			}
		}
	}
}
