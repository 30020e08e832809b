package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/internal/workers"
)

// compareFloats orders float32 as NumPy does.
func compareFloats(a, b float32) int {
	switch {
	case a == b || a != a && b != b:
		return 0
	case b != b || a < b:
		return -1
	}
	return 1
}

func compareOrdered[T int32 | uint32](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// sortCase sorts rows of elements that draw returns and compares with a stable sort.
func sortCase[T float32 | int32 | uint32](t *testing.T, p *workers.Pool, rows, cols int, descending bool, draw func(i int) T, compare func(a, b T) int) {
	t.Helper()
	n := rows * cols
	x, values, index := make([]T, n), make([]T, n+1), make([]int32, n+1)
	for i := range x {
		x[i] = draw(i)
	}
	index[n] = -77
	before := slices.Clone(words(x))
	Sort(p, values[:n], index[:n], x, rows, cols, descending)
	if !slices.Equal(words(x), before) {
		t.Fatalf("%d×%d: the operand has changed", rows, cols)
	}
	only := make([]T, n+1)
	Sort(p, only[:n], nil, x, rows, cols, descending)
	if !slices.Equal(words(only), words(values)) {
		t.Fatalf("%d×%d of %T, descending %v: other values without the columns", rows, cols, x, descending)
	}
	if words(values)[n] != 0 || index[n] != -77 {
		t.Fatalf("%d×%d: written behind the results", rows, cols)
	}
	for r := range rows {
		row, want := x[r*cols:][:cols], make([]int, cols)
		for i := range want {
			want[i] = i
		}
		slices.SortStableFunc(want, func(i, j int) int {
			if descending {
				i, j = j, i
			}
			return compare(row[i], row[j])
		})
		for j, w := range want {
			if got := int(index[r*cols+j]); got != w {
				t.Fatalf("%d×%d of %T, descending %v: place %d is column %d, not %d (%v)", rows, cols, row[0], descending, j, got, w, row[w])
			}
			if words(values)[r*cols+j] != words(row)[w] {
				t.Fatalf("%d×%d of %T, descending %v: value %d is %v, not %v", rows, cols, row[0], descending, j, values[r*cols+j], row[w])
			}
		}
	}
}

func TestSort(t *testing.T) {
	g := testutil.Rand(t)
	p := workers.New(3)
	defer p.Close()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	floats := map[string]func(i int) float32{
		"numbers": func(int) float32 { return float32(g.NormFloat64()) },
		"few":     func(int) float32 { return float32(g.IntN(5)) },
		"special": func(int) float32 {
			return []float32{nan, -nan, inf, -inf, 0, float32(math.Copysign(0, -1)), 1, math.SmallestNonzeroFloat32}[g.IntN(8)]
		},
		"bits":       func(int) float32 { return math.Float32frombits(g.Uint32()) },
		"equal":      func(int) float32 { return 2 },
		"descending": func(i int) float32 { return -float32(i) },
		"in order":   func(i int) float32 { return float32(i / 3) },
		"but a few":  func(i int) float32 { return float32(i - i%100/99*i) },
		"zeros":      func(i int) float32 { return float32(math.Copysign(0, float64(i%2)-.5)) },
		"NaN last":   func(i int) float32 { return []float32{-1, 0, nan, -nan}[min(i, 2+i%2)] },
	}
	for _, s := range [][2]int{{1, 1}, {3, 2}, {5, 31}, {2, sortLimits.radix - 1}, {2, sortLimits.radix}, {9, 65}, {2, 129}, {3, sortLimits.radix + 1}, {2, 1000}, {300, 7}, {40, 256}, {1, sortLimits.wide - 1}, {1, sortLimits.wide + 1}, {1, sortLimits.split}, {2, sortLimits.split + 5}, {0, 3}, {3, 0}} {
		for _, pool := range []*workers.Pool{nil, p} {
			for _, descending := range []bool{false, true} {
				if s[0]*s[1] > 5000 && !sampled(4) {
					continue
				}
				for _, draw := range floats {
					sortCase(t, pool, s[0], s[1], descending, draw, compareFloats)
				}
				sortCase(t, pool, s[0], s[1], descending, func(int) int32 { return int32(g.Uint32()) >> (g.Uint32() % 32) }, compareOrdered[int32])
				sortCase(t, pool, s[0], s[1], descending, func(int) uint32 { return g.Uint32() >> (g.Uint32() % 32) }, compareOrdered[uint32])
				// Near the ends of the types and around 0, where the integers' bits are out of order.
				few := 1 + g.Uint32()%60
				sortCase(t, pool, s[0], s[1], descending, func(int) int32 { return int32(g.Uint32()%few) - 20 }, compareOrdered[int32])
				sortCase(t, pool, s[0], s[1], descending, func(int) int32 { return math.MinInt32 + int32(g.Uint32()%few) }, compareOrdered[int32])
				sortCase(t, pool, s[0], s[1], descending, func(int) uint32 { return math.MaxUint32 - g.Uint32()%few }, compareOrdered[uint32])
				sortCase(t, pool, s[0], s[1], descending, func(int) uint32 { return g.Uint32() % 2 * math.MaxUint32 }, compareOrdered[uint32])
			}
		}
	}
}

// TestSortSplit divides rows among threads, independently of Pool.Worth.
func TestSortSplit(t *testing.T) {
	p := workers.New(3)
	defer p.Close()
	for _, n := range []int{sortLimits.radix, 1000, sortLimits.wide + 3, 100_003} {
		x, values, index := make([]uint32, 2*n), make([]uint32, 2*n), make([]int32, 2*n)
		for i := range x {
			x[i] = rand.Uint32() >> (rand.Uint32() % 32)
		}
		task := &sortTask{x: x, values: values, index: index, rows: 2, cols: n}
		task.split(p, 1, 5)
		row := x[n:]
		for i, at := range index[n:] {
			if values[n+i] != row[at] {
				t.Fatalf("%d elements: value %d is %d, not %d of column %d", n, i, values[n+i], row[at], at)
			}
			if i > 0 && (values[n+i] < values[n+i-1] || values[n+i] == values[n+i-1] && at <= index[n+i-1]) {
				t.Fatalf("%d elements: %d of column %d is behind %d of column %d", n, values[n+i], at, values[n+i-1], index[n+i-1])
			}
		}
		sortLevels(func(l Level) {
			only := make([]uint32, 2*n)
			task.values, task.index = only, nil
			task.split(p, 1, 5)
			if !slices.Equal(only[n:], values[n:]) {
				t.Fatalf("%v, %d elements: other values without the columns", l, n)
			}
		})
	}
}

// TestSortFew sorts rows of few different values, around the number up to which they are counted.
func TestSortFew(t *testing.T) {
	g := testutil.Rand(t)
	special := []float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.Float32frombits(0xffc00001)}
	for _, cols := range []int{sortLimits.few - 1, sortLimits.few, sortLimits.few + 1, 5000} {
		for _, different := range []int{1, 2, fewValues - 1, fewValues, fewValues + 1} {
			floats, words := make([]float32, different), make([]uint32, different)
			for i := range floats {
				floats[i], words[i] = float32(g.NormFloat64()), g.Uint32()
			}
			for _, descending := range []bool{false, true} {
				sortCase(t, nil, 3, cols, descending, func(int) float32 { return floats[g.IntN(different)] }, compareFloats)
				sortCase(t, nil, 3, cols, descending, func(int) int32 { return int32(words[g.IntN(different)]) }, compareOrdered)
				sortCase(t, nil, 3, cols, descending, func(int) uint32 { return words[g.IntN(different)] }, compareOrdered)
				for _, among := range [][]float32{special[:4], special[4:], special} { // zeros, NaN, both
					sortCase(t, nil, 3, cols, descending, func(int) float32 {
						if g.IntN(3) == 0 {
							return among[g.IntN(len(among))]
						}
						return floats[g.IntN(different)]
					}, compareFloats)
				}
			}
		}
	}
}

func TestSortWithoutOneResult(t *testing.T) {
	x := []float32{3, 1, 2}
	values, index := make([]float32, 3), make([]int32, 3)
	Sort(nil, values, nil, x, 1, 3, false)
	Sort(nil, nil, index, x, 1, 3, true)
	if !slices.Equal(values, []float32{1, 2, 3}) || !slices.Equal(index, []int32{0, 2, 1}) {
		t.Errorf("%v, %v", values, index)
	}
}

func BenchmarkSort(b *testing.B) {
	p := workers.New(0)
	defer p.Close()
	for _, s := range [][2]int{{1, 1 << 20}, {1000, 1000}, {100_000, 10}} {
		for _, pool := range []*workers.Pool{nil, p} {
			b.Run(fmt.Sprintf("%dx%d/threads=%d", s[0], s[1], pool.Threads()), func(b *testing.B) {
				n := s[0] * s[1]
				x, values, index := make([]float32, n), make([]float32, n), make([]int32, n)
				for i := range x {
					x[i] = rand.Float32()
				}
				b.SetBytes(int64(4 * n))
				for b.Loop() {
					Sort(pool, values, index, x, s[0], s[1], false)
				}
			})
		}
	}
}
