package memory

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"testing"
	"unsafe"
)

func address[T any](s []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }

func TestFloats(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 17, 1000, 4093, Huge/4 - 1, Huge / 4, Huge/4 + 1, 3 << 20} {
		for range 3 {
			s, err := Floats(n)
			if err != nil {
				t.Fatal(err)
			}
			if s == nil || len(s) != n || cap(s) != n {
				t.Fatalf("Floats(%d): nil %t, length %d, capacity %d", n, s == nil, len(s), cap(s))
			}
			want := uintptr(Line)
			if 4*n >= Huge {
				want = Huge
			}
			if n > 0 && address(s)%want != 0 {
				t.Errorf("Floats(%d) starts at %#x, not on a multiple of %d", n, address(s), want)
			}
			for i := range s {
				if s[i] != 0 {
					t.Fatalf("Floats(%d)[%d] = %v", n, i, s[i])
				}
				s[i] = float32(math.NaN())
			}
		}
		runtime.GC() // so that the next round may get used memory
	}
}

func TestSizes(t *testing.T) {
	for _, n := range []int{-1, math.MinInt, math.MaxInt, math.MaxInt / 4, math.MaxInt/4 + 1, largest/4 + 1} {
		if s, err := Floats(n); s != nil || !errors.Is(err, ErrOutOfMemory) {
			t.Errorf("Floats(%d) = %d elements, %v", n, len(s), err)
		}
		if _, err := Size[uint64](n); !errors.Is(err, ErrOutOfMemory) {
			t.Errorf("Size(%d): %v", n, err)
		}
	}
	if b, err := Size[uint16](7); b != 14 || err != nil {
		t.Errorf("Size[uint16](7) = %d, %v", b, err)
	}
}

func TestSaneCaches(t *testing.T) {
	for _, test := range []struct{ in, want Caches }{
		{Caches{-1, -1, -1}, Caches{32 << 10, 512 << 10, 8 << 20}},
		{Caches{0, 0, 0}, Caches{32 << 10, 512 << 10, 8 << 20}},
		{Caches{48 << 10, 2 << 20, 0}, Caches{48 << 10, 2 << 20, 8 << 20}},
		{Caches{128 << 10, 16 << 20, 0}, Caches{128 << 10, 16 << 20, 16 << 20}},
		{Caches{32 << 10, 1 << 20, 32 << 20}, Caches{32 << 10, 1 << 20, 32 << 20}},
		{Caches{32 << 10, 1 << 20, 4 << 10}, Caches{32 << 10, 1 << 20, 1 << 20}},
	} {
		if got := sane(test.in); got != test.want {
			t.Errorf("sane(%v) = %v, want %v", test.in, got, test.want)
		}
	}
	if c := CPUCaches(); c.L1 < 4<<10 || c.L1 > c.L2 || c.L2 > c.Last || c.Last != LastLevelCache() {
		t.Errorf("caches of this machine: %+v", c)
	}
}

var kinds = []struct {
	name string
	get  func(n int) (floats []float32, free func())
}{
	{"make", func(n int) ([]float32, func()) { return make([]float32, n), func() {} }},
	{"Floats", func(n int) ([]float32, func()) {
		s, err := Floats(n)
		if err != nil {
			panic(err)
		}
		return s, func() {}
	}},
	{"Block", func(n int) ([]float32, func()) {
		b, err := NewPool(Options{Keep: -1}).Get(4 * n)
		if err != nil {
			panic(err)
		}
		return As[float32](b), b.Free
	}},
}

// BenchmarkCopy tells what the pages under large arrays are worth.
func BenchmarkCopy(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000, 10_000_000} {
		for _, kind := range kinds {
			b.Run(fmt.Sprintf("%d/%s", n, kind.name), func(b *testing.B) {
				src, freeSrc := kind.get(n)
				dst, freeDst := kind.get(n)
				defer freeSrc()
				defer freeDst()
				for i := range src {
					src[i], dst[i] = 1, 2
				}
				b.SetBytes(int64(8 * n))
				for b.Loop() {
					copy(dst, src)
				}
			})
		}
	}
}

// BenchmarkFirstTouch allocates and writes each element once.
func BenchmarkFirstTouch(b *testing.B) {
	for _, n := range []int{1_000_000, 10_000_000} {
		for _, kind := range kinds {
			b.Run(fmt.Sprintf("%d/%s", n, kind.name), func(b *testing.B) {
				for b.Loop() {
					s, free := kind.get(n)
					for i := range s {
						s[i] = 1
					}
					free()
				}
			})
		}
	}
}
