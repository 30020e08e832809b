package simd

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestWords(t *testing.T) {
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
			x[i] = rand.Uint32() | 1
			switch rand.IntN(4) {
			case 0:
				x[i] = 0
			case 1:
				x[i] = 1 << 31 // -0
			}
			small[i] = uint8(rand.IntN(3)) << rand.IntN(8)
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
			if n > 0 && rand.IntN(3) > 0 {
				v = x[rand.IntN(n)]
			}
			if got, want := IndexWord(x, v), slices.Index(x, v); got != want {
				t.Errorf("%d elements: %d is at %d, found at %d", n, v, want, got)
			}
		}
		for name, f := range combine {
			fold := FoldWords(name)
			if fold == nil || n%8 > 0 || n == 0 {
				continue
			}
			want := x[0]
			for _, e := range x[1:] {
				want = f(want, e)
			}
			if got := fold(&x[0], n); got != want {
				t.Errorf("%s of %d elements: %d, not %d", name, n, got, want)
			}
		}
	}
}

func TestCumsumWords(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 9, 16, 31, 100, 1000, wordCall + 13} {
		x, dst := make([]uint32, n+8), make([]uint32, n+8)
		for i := range x {
			x[i], dst[i] = rand.Uint32(), 77
		}
		before := rand.Uint32()
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
