package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// seeded returns a generator and logs its seed.
func seeded(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

func TestWords(t *testing.T) {
	g := seeded(t)
	combine := map[string]func(a, b uint32) uint32{
		"i32.add": func(a, b uint32) uint32 { return a + b }, "u32.mul": func(a, b uint32) uint32 { return a * b },
		"i32.maximum": func(a, b uint32) uint32 { return uint32(max(int32(a), int32(b))) },
		"i32.minimum": func(a, b uint32) uint32 { return uint32(min(int32(a), int32(b))) },
		"u32.maximum": func(a, b uint32) uint32 { return max(a, b) },
		"u32.minimum": func(a, b uint32) uint32 { return min(a, b) },
	}
	for _, n := range []int{0, 1, 7, 8, 9, 31, 32, 40, 100, 1000, wordCall + 13} {
		x, small := make([]uint32, n), make([]uint8, n)
		nonzero, floats, bytes := 0, 0, 0
		for i := range x {
			x[i] = g.Uint32() | 1
			switch g.IntN(4) {
			case 0:
				x[i] = 0
			case 1:
				x[i] = 1 << 31 // -0
			}
			small[i] = uint8(g.IntN(3)) << g.IntN(8)
			nonzero += int(min(x[i], 1))
			floats += int(min(x[i]<<1, 1))
			bytes += int(min(small[i], 1))
		}
		if got := CountNonzero(x, false); got != nonzero {
			t.Errorf("%d elements: %d are not 0, counted %d", n, nonzero, got)
		}
		if got := CountNonzero(x, true); got != floats {
			t.Errorf("%d floats: %d are not 0, counted %d", n, floats, got)
		}
		if got := CountNonzeroBytes(small); got != bytes {
			t.Errorf("%d bytes: %d are not 0, counted %d", n, bytes, got)
		}
		for range 8 {
			v := uint32(12345)
			if n > 0 && g.IntN(3) > 0 {
				v = x[g.IntN(n)]
			}
			if got, want := IndexWord(x, v), slices.Index(x, v); got != want {
				t.Errorf("%d elements: %d is at %d, found at %d", n, v, want, got)
			}
		}
	}
	for _, cols := range []int{1, 3, 7, 8, 9, 31, 32, 33, 39, 40, 100, 1000} {
		rows := 1 + g.IntN(9)
		x := make([]uint32, rows*cols+8)
		for i := range x {
			x[i] = g.Uint32() >> (g.IntN(2) * 31)
		}
		combine["i32.zeros"] = nil
		for name, f := range combine {
			fold := FoldRows(name)
			if f == nil {
				fold = ZerosOfRows(false)
			}
			if fold == nil {
				continue
			}
			got := make([]uint32, rows+1)
			got[rows] = 77
			fold(&got[0], &x[0], rows, cols)
			for r := range rows {
				row := x[r*cols:][:cols]
				want := row[0]
				for _, e := range row[1:] {
					if f != nil {
						want = f(want, e)
					}
				}
				if f == nil {
					want = -uint32(cols - CountNonzero(row, false))
				}
				if got[r] != want {
					t.Errorf("%s of %d elements: %d, not %d", name, cols, got[r], want)
				}
			}
			if got[rows] != 77 {
				t.Errorf("%s of %d rows of %d writes beyond its results", name, rows, cols)
			}
		}
	}
}

// TestProductsOfRows compares products with float64.
func TestProductsOfRows(t *testing.T) {
	g := seeded(t)
	fold := FoldRows("f32.mul")
	if fold == nil {
		return // the level has no such kernel
	}
	for _, cols := range []int{1, 3, 7, 8, 9, 31, 32, 33, 39, 40, 100} {
		const rows = 5
		x, got := make([]float32, rows*cols), make([]float32, rows)
		for i := range x {
			x[i] = 0.5 + g.Float32()
		}
		fold((*uint32)(unsafe.Pointer(&got[0])), (*uint32)(unsafe.Pointer(&x[0])), rows, cols)
		for r := range rows {
			want := 1.0
			for _, v := range x[r*cols:][:cols] {
				want *= float64(v)
			}
			if d := math.Abs(float64(got[r])-want) / want; !(d <= float64(cols)*0x1p-24) {
				t.Errorf("product of %d elements: %v, want %v", cols, got[r], want)
			}
		}
	}
}

func TestCumsumWords(t *testing.T) {
	g := seeded(t)
	for _, n := range []int{0, 1, 7, 8, 9, 16, 31, 100, 1000, wordCall + 13} {
		x, dst := make([]uint32, n+8), make([]uint32, n+8)
		for i := range x {
			x[i], dst[i] = g.Uint32(), 77
		}
		before := g.Uint32()
		want, sum := slices.Clone(x), before
		for i := range want[:n] {
			sum += want[i]
			want[i] = sum
		}
		if got := CumsumWords(dst, x[:n], before); got != sum || !slices.Equal(dst[:n], want[:n]) || n < len(dst) && dst[n] != 77 {
			t.Errorf("%d elements: sum %d, want %d", n, got, sum)
		}
		if got := CumsumWords(x, x[:n], before); got != sum || !slices.Equal(x, want) {
			t.Errorf("%d elements in place: sum %d, want %d", n, got, sum)
		}
	}
}

func TestCumsumWordRows(t *testing.T) {
	g := seeded(t)
	for _, cols := range []int{1, 2, 3, 5, 7, 8, 9, 24, 25, 40} {
		for _, rows := range []int{1, 2, 3, 4, 9, 100} {
			n := rows * cols
			x, dst, want := make([]uint32, n), make([]uint32, n+9), make([]uint32, n+9)
			for i := range want {
				want[i] = 77
			}
			copy(dst, want)
			for i := range x {
				x[i] = g.Uint32()
				want[i] = x[i]
				if i%cols > 0 {
					want[i] += want[i-1]
				}
			}
			CumsumWordRows(dst[:n], x, cols)
			if !slices.Equal(dst, want) {
				t.Errorf("%d rows of %d: %v, want %v", rows, cols, dst, want)
			}
			CumsumWordRows(x, x, cols)
			if !slices.Equal(x, want[:n]) {
				t.Errorf("%d rows of %d in place: %v, want %v", rows, cols, x, want[:n])
			}
		}
	}
}
