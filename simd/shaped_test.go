package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
	"unsafe"

	"github.com/rayo-go/rayo/internal/memory"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/internal/workers"
	"github.com/rayo-go/rayo/op"
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
	nan := float32(math.NaN())
	gathered(t, func(u uint32) float32 { return float32(u) }, nan, func(a, b float32) bool { return a == b || a != a && b != b })
	gathered(t, func(u uint32) uint32 { return u }, 0, func(a, b uint32) bool { return a == b })
	gathered(t, func(u uint32) uint8 { return uint8(u) }, 0, func(a, b uint8) bool { return a == b })
	gathered(t, func(u uint32) uint16 { return uint16(u) }, 0x7fff, func(a, b uint16) bool { return a == b })
}

// someIDs returns ids of an axis. Some are out of range.
func someIDs(n, extent int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(rand.IntN(2*extent+6) - extent - 3)
	}
	if n > 3 {
		ids[1], ids[2] = math.MinInt32, math.MaxInt32
	}
	return ids
}

func gathered[T uint8 | uint16 | uint32 | float32](t *testing.T, of func(uint32) T, missing T, equal func(a, b T) bool) {
	p := workers.New(0)
	defer p.Close()
	const guard = 8
	for _, inner := range []int{0, 1, 3, 5, 10, 64, 100, 1000} {
		for _, n := range []int{0, 1, 5, 3000} {
			for _, outer := range []int{1, 3} {
				if n*outer*inner > 300_000 && !sampled(4) {
					continue
				}
				const extent = 17
				x, dst := make([]T, outer*extent*inner), make([]T, outer*n*inner+guard)
				for i := range x {
					x[i] = of(rand.Uint32N(1 << 20))
				}
				for i := range dst {
					dst[i] = of(1<<24 - 1)
				}
				ids := someIDs(n, extent)
				Gather(p, dst[:outer*n*inner], x, ids, outer, extent, inner, missing)
				for i, g := range dst {
					want := of(1<<24 - 1)
					if i < outer*n*inner {
						o, k, j := i/inner/n, i/inner%n, i%inner
						id := int(ids[k])
						if id < 0 {
							id += extent
						}
						if want = missing; id >= 0 && id < extent {
							want = x[(o*extent+id)*inner+j]
						}
					}
					if !equal(g, want) {
						t.Fatalf("%d of %d times %d rows of %d: element %d is %v, want %v", n, outer, extent, inner, i, g, want)
					}
				}
			}
		}
	}
}

// TestScatter compares every number of threads with one row after the other.
func TestScatter(t *testing.T) {
	p := workers.New(0)
	defer p.Close()
	for _, pool := range []*workers.Pool{nil, p} {
		for reduce := op.ScatterSet; reduce <= op.ScatterMax; reduce++ {
			scattered(t, pool, reduce, func() float32 { return float32(rand.NormFloat64()) })
			scattered(t, pool, reduce, func() int32 { return int32(rand.Uint32()) })
			scattered(t, pool, reduce, rand.Uint32)
		}
	}
}

// TestScatterEven checks which ids let threads have rows of their own.
func TestScatterEven(t *testing.T) {
	for _, c := range []struct {
		n, parts int
		id       func(i int) int
		want     bool
	}{
		{1000, 4, func(i int) int { return i * 7919 % 100 }, true},
		{100_000, 4, func(i int) int { return i/1000 - 100 }, true},
		{128, 4, func(i int) int { return i * 100 / 128 }, true},
		{127, 4, func(i int) int { return i * 100 / 127 }, false},
		{1000, 4, func(i int) int { return i % 60 }, false},
		{1000, 2, func(i int) int { return i%50 - 50 }, false},
		{100_000, scatterParts + 1, func(i int) int { return i % 100 }, false},
		{1000, 4, func(i int) int { return 100 + i }, true}, // no row at all
		{100_000, 16, func(i int) int { return i * 7919 % 100 }, true},
		{1024 * 64, 4, func(i int) int { // the first of each 64 ids is random
			if i%64 == 0 {
				return i / 64 * 7919 % 100
			}
			return 0
		}, false},
		{10_000, 4, func(i int) int { // most ids are dropped
			if i%4 > 0 {
				return 100
			}
			return i % 25
		}, false},
	} {
		s := Scatter[float32]{IDs: make([]int32, c.n), Outer: 1, Extent: 100, Inner: 1000, parts: c.parts}
		for i := range s.IDs {
			s.IDs[i] = int32(c.id(i))
		}
		if s.even() != c.want {
			t.Errorf("%d ids, %d parts: even is %v", c.n, c.parts, !c.want)
		}
	}
}

func scattered[T uint32 | int32 | float32](t *testing.T, pool *workers.Pool, reduce op.ScatterReduce, value func() T) {
	const guard = 8
	fold := map[op.ScatterReduce]func(a, b T) T{
		op.ScatterSet: func(_, b T) T { return b }, op.ScatterAdd: func(a, b T) T { return a + b }, op.ScatterMul: func(a, b T) T { return a * b },
		op.ScatterMin: func(a, b T) T { return min(a, b) }, op.ScatterMax: func(a, b T) T { return max(a, b) },
	}[reduce]
	for _, s := range [][4]int{{1, 17, 1, 9}, {1, 1000, 1, 30000}, {3, 5, 4, 7}, {1, 9, 300, 400}, {40, 11, 1, 900}, {1, 0, 3, 2}, {2, 3, 0, 4}, {1, 4, 5, 0}, {1, 70, 3, 8000}, {1, 90, 300, 400}} {
		outer, extent, inner, n := s[0], s[1], s[2], s[3]
		dst, v := make([]T, outer*extent*inner+guard), make([]T, outer*n*inner)
		for i := range dst {
			dst[i] = value()
		}
		for i := range v {
			v[i] = value()
		}
		ids, want := someIDs(n, extent), slices.Clone(dst)
		for i := range ids {
			if extent == 90 { // not even
				ids[i] = int32(i % 3)
			}
		}
		for o := range outer {
			for k, id := range ids {
				at := int(id)
				if at < 0 {
					at += extent
				}
				for j := 0; j < inner && at >= 0 && at < extent; j++ {
					y := &want[(o*extent+at)*inner+j]
					*y = fold(*y, v[(o*n+k)*inner+j])
				}
			}
		}
		(&Scatter[T]{Dst: dst[:len(dst)-guard], V: v, IDs: ids, Outer: outer, Extent: extent, Inner: inner, Reduce: reduce}).Run(pool)
		if !slices.Equal(dst, want) {
			t.Fatalf("%v of %v, %T: a wrong element", reduce, s, dst[0])
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
		{Positions: 20, Inner: 3, Dim: 16, XPosition: 70, XInner: 16},
		{Positions: 7, Inner: 4, Dim: 10, XPosition: 12, XInner: 90, Rotary: 6},
	} {
		for _, half := range []bool{false, true} {
			r.Half = half
			outer, inner := max(1, r.Outer), max(1, r.Inner)
			n := outer * r.Positions * inner * r.Dim
			position, vector := r.XPosition, r.XInner
			if position == 0 {
				position, vector = inner*r.Dim, r.Dim
			}
			reads := n
			if r.XPosition > 0 {
				reads = (r.Positions-1)*position + (inner-1)*vector + r.Dim
			}
			x, xok := guarded(t, reads, 0)
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
				in, out := x[v/inner*position+v%inner*vector:][:r.Dim], dst[v*r.Dim:][:r.Dim]
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
			if r.XPosition > 0 {
				continue // where the results would be is not where the vectors are
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
		uniform(x, 0, 1)
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

func TestRepeat(t *testing.T) {
	x := make([]uint32, 40)
	for i := range x {
		x[i] = rand.Uint32()
	}
	for _, n := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 31, 100} {
		for _, step := range []int{0, 1, 3, -2} {
			for _, count := range []int{0, 1, 2, 10} {
				const at = 30
				from := at
				if step > 0 {
					from = 0
				}
				dst := make([]uint32, n*count+1)
				Repeat(&dst[0], &x[from], n, step, count)
				for i, v := range dst[:n*count] {
					if want := x[from+i/n*step]; v != want {
						t.Fatalf("%d times %d at distance %d: element %d is %d, not %d", count, n, step, i, v, want)
					}
				}
				if dst[n*count] != 0 {
					t.Fatalf("%d times %d: written behind the results", count, n)
				}
			}
		}
	}
}

// TestTransposeThreads transposes matrices with several threads, narrow ones among them.
func TestTransposeThreads(t *testing.T) {
	p := workers.New(0)
	defer p.Close()
	eachLevel(t, func(t *testing.T) {
		for _, s := range [][2]int{{0, 4}, {1, 5}, {9, 1}, {5, 7}, {64, 65}, {90_001, 3}, {3, 90_001}, {40_097, 8}, {1300, 131}} {
			rows, cols := s[0], s[1]
			x, xok := guarded(t, rows*cols, 1)
			dst, ok := guarded(t, rows*cols, 3)
			for i := range x {
				x[i] = float32(i)
			}
			Transpose(p, dst, x, rows, cols)
			xok()
			ok()
			for i, want := range x {
				if got := dst[i%cols*rows+i/cols]; got != want {
					t.Fatalf("%v: element %d is %v, not %v", s, i, got, want)
				}
			}
		}
	})
}

func TestTransposeTile(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, rows := range []int{1, 2, 3, 5, 7, 8, 9, 16, 17, 63, 130} {
			for _, cols := range []int{1, 2, 3, 4, 5, 8, 15, 16, 17, 65, 129} {
				for _, gap := range [][2]int{{0, 0}, {5, 0}, {0, 3}, {1, 1}} {
					ss, ds := cols+gap[0], rows+gap[1]
					x, xok := guarded(t, (rows-1)*ss+cols, 1)
					dst, ok := guarded(t, (cols-1)*ds+rows, 3)
					for i := range x {
						x[i] = float32(i + 1)
					}
					for i := range dst {
						dst[i] = -1
					}
					TransposeTile(&dst[0], &x[0], ds, ss, rows, cols)
					xok()
					ok()
					for k, got := range dst {
						want, i, j := float32(-1), k%ds, k/ds
						if i < rows {
							want = x[i*ss+j]
						}
						if got != want {
							t.Fatalf("%dx%d, distances %d and %d: element %d of column %d is %v, not %v", rows, cols, ss, ds, i, j, got, want)
						}
					}
				}
			}
		}
	})
}

// TestTurnRows transposes groups of rows to a buffer, and joins their lines with each kernel.
func TestTurnRows(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		if !HasTurn() {
			return
		}
		r := testutil.Rand(t)
		for range 200 {
			groups, cols := 1+r.IntN(5), 1+r.IntN(70)
			ss := cols + r.IntN(9)
			x, xok := guarded(t, 16*groups*ss, 1)
			for i := range x {
				x[i] = float32(i)
			}
			offs := make([]int, 16*groups)
			for k, row := range r.Perm(len(offs)) {
				offs[k] = 4 * row * ss
			}
			gap := 16 * (cols + r.IntN(3))
			buffer, bok := guarded(t, groups*gap, aligned)
			TurnRows(wordOf(&buffer[0]), wordOf(&x[0]), offs, gap, r.IntN(100), cols)
			bok()
			xok()
			for kind := range 3 {
				rows := 16 * groups
				odd, ds := r.IntN(16), rows+r.IntN(20)
				if kind == 1 {
					odd, ds = aligned, (ds+15)&^15
				}
				dst, ok := guarded(t, (cols-1)*ds+rows, odd)
				for i := range dst {
					dst[i] = -1
				}
				to, from, lines := wordOf(&dst[0]), wordOf(&buffer[0]), groups
				switch kind {
				case 0:
					JoinLines(to, from, ds, 16, gap, lines, cols)
				case 1:
					JoinLinesPast(to, from, ds, 16, gap, lines, cols)
				default:
					if lines--; lines == 0 {
						continue
					}
					row, rok := guarded(t, rows, 0)
					JoinLinesSkew(to, from, ds, 16, gap, lines, cols, wordOf(&row[0]))
					rok()
				}
				StreamFence()
				ok()
				for i, got := range dst {
					want, row, j := float32(-1), i%ds, i/ds
					lead := 0
					if kind == 2 {
						lead = int(-uintptr(unsafe.Pointer(&dst[j*ds]))%64) / 4
					}
					if row >= lead && row < lead+16*lines {
						want = x[offs[row]/4+j]
					}
					if got != want {
						t.Fatalf("kernel %d, %d groups, %d columns %d apart: element %d is %v, not %v", kind, groups, cols, ds, i, got, want)
					}
				}
			}
		}
	})
}

func TestCopyRows(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, n := range []int{1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 63, 64, 65, 97, 100} {
			for _, count := range []int{1, 2, 3, 1000} {
				for k, ss := range []int{0, n, n + 3, n + 5} {
					ds := n + []int{0, 5, 0, -n & 7}[k]
					x, xok := guarded(t, (count-1)*ss+n, 1)
					dst, ok := guarded(t, (count-1)*ds+n, []int{3, 3, 3, aligned}[k])
					for i := range x {
						x[i] = float32(i + 1)
					}
					for i := range dst {
						dst[i] = -1
					}
					if !CopyRows((*uint32)(unsafe.Pointer(&dst[0])), (*uint32)(unsafe.Pointer(&x[0])), n, ds, ss, count, k >= 2) {
						continue
					}
					StreamFence()
					xok()
					ok()
					for i, got := range dst {
						want := float32(-1)
						if i%ds < n {
							want = x[i/ds*ss+i%ds]
						}
						if got != want {
							t.Fatalf("%d rows of %d, %d and %d apart: element %d is %v, not %v", count, n, ss, ds, i, got, want)
						}
					}
				}
			}
		}
	})
}

func TestCopyPast(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, n := range lengths() {
			for _, odd := range []int{0, 1, 5, aligned} {
				x, xok := guarded(t, n, 3)
				dst, ok := guarded(t, n, odd)
				for i := range x {
					x[i] = float32(i + 1)
				}
				words := func(x []float32) []uint32 {
					return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
				}
				CopyPast(words(dst), words(x))
				StreamFence()
				xok()
				ok()
				if !slices.Equal(dst, x) {
					t.Fatalf("%d elements: %v is not %v", n, dst, x)
				}
			}
		}
	})
}
