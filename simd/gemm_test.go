package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/rayo-go/rayo/internal/memory"
	"github.com/rayo-go/rayo/internal/workers"
)

// eachGemmLevel runs the test at every level of the machine.
func eachGemmLevel(t *testing.T, test func(t *testing.T)) {
	defer useKernels(active)
	for _, l := range Supported() {
		useKernels(l)
		t.Run(l.String(), test)
	}
}

// guard is the number of NaN before and after the slices that tests pass to kernels. A
// kernel that writes beyond a slice changes them, and one that reads them gives NaN.
const guard = 37

// fenced returns n floats between guards and a check of the guards.
func fenced(t *testing.T, n int, fill func(i int) float32) ([]float32, func()) {
	t.Helper()
	all := make([]float32, n+2*guard)
	for i := range all {
		all[i] = float32(math.NaN())
	}
	s := all[guard : guard+n : guard+n]
	for i := range s {
		s[i] = fill(i)
	}
	return s, func() {
		t.Helper()
		for i, v := range all {
			if (i < guard || i >= guard+n) && v == v {
				t.Fatalf("wrote %v at %d of %d elements", v, i-guard, n)
			}
		}
	}
}

func normal(int) float32 { return float32(rand.NormFloat64()) }

func nan(int) float32 { return float32(math.NaN()) }

// gemmCase is a product of random matrices laid out in one of several ways.
type gemmCase struct {
	m, k, n        int
	transA, transB bool
	gap            int // unused elements between rows, or between elements of strided matrices
	strided        bool
	accumulate     bool
	bias, epilogue bool
	batch          int
	sharedB        bool
}

func (c gemmCase) String() string {
	s := fmt.Sprintf("%dx%dx%d", c.m, c.k, c.n)
	for _, f := range []struct {
		on   bool
		name string
	}{{c.transA, "transA"}, {c.transB, "transB"}, {c.strided, "strided"}, {c.accumulate, "accumulate"},
		{c.bias, "bias"}, {c.epilogue, "epilogue"}, {c.sharedB, "sharedB"}} {
		if f.on {
			s += "," + f.name
		}
	}
	if c.gap > 0 {
		s += fmt.Sprintf(",gap=%d", c.gap)
	}
	if c.batch > 1 {
		s += fmt.Sprintf(",batch=%d", c.batch)
	}
	return s
}

// layout returns the strides of rows×cols elements and their extent.
func (c gemmCase) layout(rows, cols int, trans bool) (row, col, extent int) {
	step := 1
	if c.strided {
		step = 2 + c.gap
	}
	if trans {
		row, col = step, rows*step+c.gap
	} else {
		row, col = cols*step+c.gap, step
	}
	if rows == 0 || cols == 0 {
		return row, col, 0
	}
	return row, col, (rows-1)*row + (cols-1)*col + 1
}

// check runs the product and compares it with a sum in float64. Its error
// may be that of a sum in float32 in any order: k roundings of partial sums
// that are no larger than the sum of the magnitudes.
func (c gemmCase) check(t *testing.T, p *workers.Pool) {
	t.Helper()
	batch := max(1, c.batch)
	var g Gemm
	g.M, g.N, g.K, g.Batch, g.Accumulate = c.m, c.n, c.k, c.batch, c.accumulate
	var an, bn int
	g.ARow, g.ACol, an = c.layout(c.m, c.k, c.transA)
	g.BRow, g.BCol, bn = c.layout(c.k, c.n, c.transB)
	g.CRow = c.n + c.gap
	cn := max(0, (c.m-1)*g.CRow+c.n)
	if batch > 1 {
		g.AStride, g.BStride, g.CStride = an+3, bn+5, cn+2
		if c.sharedB {
			g.BStride = 0
		}
	}
	extent := func(stride, n int) int { return (batch-1)*stride + n }
	start := nan
	if c.accumulate {
		start = normal
	}
	var checks [4]func()
	g.A, checks[0] = fenced(t, extent(g.AStride, an), nan)
	g.B, checks[1] = fenced(t, extent(g.BStride, bn), nan)
	g.C, checks[2] = fenced(t, extent(g.CStride, cn), start)
	if c.bias {
		g.Bias, checks[3] = fenced(t, c.n, normal)
	}
	// Elements between those of a matrix stay NaN: nobody may use them.
	for b := range batch {
		for k := range c.k {
			for i := range c.m {
				g.A[b*g.AStride+i*g.ARow+k*g.ACol] = normal(0)
			}
			for j := range c.n {
				g.B[b*g.BStride+k*g.BRow+j*g.BCol] = normal(0)
			}
		}
	}
	before := append([]float32(nil), g.C...)
	var mu sync.Mutex
	seen := make([]int, batch*c.m*c.n)
	if c.epilogue {
		g.Epilogue = func(row []float32, i, j int) {
			mu.Lock()
			defer mu.Unlock()
			if len(row) != cap(row) {
				t.Errorf("a row of %d elements can grow to %d", len(row), cap(row))
			}
			for q := range row {
				seen[i*c.n+j+q]++
				row[q] = -2*row[q] + float32(i)
			}
		}
	}
	g.Run(p)
	for _, check := range checks {
		if check != nil {
			check()
		}
	}
	for b := range batch {
		for i := range c.m {
			for j := range c.n {
				at := b*g.CStride + i*g.CRow + j
				var sum, size float64
				for k := range c.k {
					x := float64(g.A[b*g.AStride+i*g.ARow+k*g.ACol]) * float64(g.B[b*g.BStride+k*g.BRow+j*g.BCol])
					sum += x
					size += math.Abs(x)
				}
				if c.accumulate {
					sum += float64(before[at])
					size += math.Abs(float64(before[at]))
				}
				if c.bias {
					sum += float64(g.Bias[j])
					size += math.Abs(float64(g.Bias[j]))
				}
				bound := size * (4 + math.Sqrt(float64(c.k))) * 0x1p-24
				if c.epilogue {
					if s := seen[(b*c.m+i)*c.n+j]; s != 1 {
						t.Fatalf("the epilogue saw row %d, column %d %d times", i, j, s)
					}
					sum = -2*sum + float64(b*c.m+i)
					bound = 2*bound + math.Abs(sum)*0x1p-23
				}
				if got := float64(g.C[at]); !(math.Abs(got-sum) <= bound) {
					t.Fatalf("matrix %d, row %d, column %d: got %v, want %v within %.3g", b, i, j, got, sum, bound)
				}
			}
		}
		// Between the rows of C nothing was touched.
		for i := range max(0, c.m-1) {
			for j := c.n; j < g.CRow; j++ {
				if at := b*g.CStride + i*g.CRow + j; math.Float32bits(g.C[at]) != math.Float32bits(before[at]) {
					t.Fatalf("wrote column %d of %d", j, c.n)
				}
			}
		}
	}
}

func (c gemmCase) run(t *testing.T, p *workers.Pool) {
	t.Helper()
	if !t.Run(c.String(), func(t *testing.T) { c.check(t, p) }) {
		t.Logf("failed: %v", c)
	}
}

// TestGemmTiles takes every height and width of a tile and their neighbours.
func TestGemmTiles(t *testing.T) {
	eachGemmLevel(t, func(t *testing.T) {
		for m := range 32 {
			for _, n := range []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 15, 16, 17, 24, 25, 31, 32, 33, 47, 48, 49, 65} {
				for _, k := range []int{0, 1, 2, 3, 4, 5, 8, 17, 67} {
					if testing.Short() && (m+n+k)%4 != 0 {
						continue
					}
					gemmCase{m: m, k: k, n: n, accumulate: (m+n+k)%2 == 1, bias: (m+n+k)%3 == 1, epilogue: (m+k)%5 == 0, gap: (m + k) % 4}.check(t, nil)
					if t.Failed() {
						t.Fatalf("%dx%dx%d", m, k, n)
					}
				}
			}
		}
	})
}

func TestGemmLayouts(t *testing.T) {
	p := workers.New(4)
	defer p.Close()
	eachGemmLevel(t, func(t *testing.T) {
		for _, s := range [][3]int{{1, 1, 1}, {1, 7, 33}, {3, 129, 5}, {16, 40, 40}, {29, 64, 70}, {45, 17, 129}, {128, 96, 64}} {
			for bits := range 64 {
				if testing.Short() && bits%3 != 0 {
					continue
				}
				c := gemmCase{m: s[0], k: s[1], n: s[2], transA: bits&1 != 0, transB: bits&2 != 0, strided: bits&4 != 0,
					accumulate: bits&8 != 0, bias: bits&16 != 0, epilogue: bits&32 != 0, gap: bits % 3}
				c.check(t, nil)
				c.check(t, p)
				if t.Failed() {
					t.Fatal(c)
				}
			}
		}
	})
}

// TestGemmBlocks crosses the limits of the blocks along M, N and K, alone and
// with more threads than a machine may have.
func TestGemmBlocks(t *testing.T) {
	p := workers.New(4)
	defer p.Close()
	eachGemmLevel(t, func(t *testing.T) {
		sizes := [][3]int{{64, 1100, 64}, {61, 521, 1031}, {257, 64, 300}, {213, 1027, 33}, {150, 300, 300}, {2, 700, 1500}, {1500, 700, 2}, {128, 128, 128}, {312, 8, 312}}
		if testing.Short() {
			sizes = sizes[:1]
		}
		for i, s := range sizes {
			c := gemmCase{m: s[0], k: s[1], n: s[2], bias: i%2 == 0, epilogue: i%3 == 0, accumulate: i%4 == 1}
			c.run(t, nil)
			c.transA, c.transB = i%2 == 0, i%2 == 1
			c.run(t, p)
			c.transA, c.transB, c.gap = true, true, 1
			c.run(t, p)
		}
	})
}

// TestGemmGoes goes several times over rows of B that alias.
func TestGemmGoes(t *testing.T) {
	p := workers.New(2)
	defer p.Close()
	defer func(goes, far int) { rowsGoes, farB = goes, far }(rowsGoes, farB)
	rowsGoes, farB = 4, 0
	eachGemmLevel(t, func(t *testing.T) {
		few := len(gemmActive().rowsFew)
		for i, m := range []int{few + 1, 2 * few, 2*few + 1, 4*few - 1, 4 * few, 4*few + 1} {
			for _, s := range [][2]int{{1, 1024}, {300, 1024}, {67, 2048}} {
				j := gemmJob{ks: gemmActive(), g: Gemm{M: m, N: s[1], K: s[0], BRow: s[1], BCol: 1}}
				if is := m <= 4*few; j.planRows() != is {
					t.Errorf("%d rows, %d at a time: %v", m, few, !is)
				}
				c := gemmCase{m: m, k: s[0], n: s[1], transA: i%2 == 0, accumulate: i%3 == 0, bias: i%2 == 1, epilogue: i%3 == 1}
				c.check(t, nil)
				c.check(t, p)
			}
		}
	})
}

// TestGemmBraids has tiles of A of all layouts that are multiplied by many
// panels, and narrower ones behind them.
func TestGemmBraids(t *testing.T) {
	p := workers.New(2)
	defer p.Close()
	eachGemmLevel(t, func(t *testing.T) {
		i := 0
		for _, m := range []int{14, 15, 28, 41, 71} {
			for _, n := range []int{256, 263, 272, 287, 300} {
				for _, k := range []int{1, 3, 4, 18, 67, 351, 700} {
					if i++; k*n > 90_000 && i%4 != 0 || testing.Short() && i%3 != 0 {
						continue
					}
					gemmCase{m: m, k: k, n: n, transA: i%3 == 0, transB: i%5 == 0, strided: i%7 == 0, gap: i % 3,
						accumulate: i%2 == 0, bias: i%4 == 1, epilogue: i%6 == 0}.run(t, []*workers.Pool{nil, p}[i%2])
				}
			}
		}
	})
}

// TestGemmAliasingStrides has rows a power of two apart.
func TestGemmAliasingStrides(t *testing.T) {
	eachGemmLevel(t, func(t *testing.T) {
		gemmCase{m: 40, k: 1000, n: 200, gap: 24}.run(t, nil)
		gemmCase{m: 40, k: 1024, n: 256}.run(t, nil)
	})
}

// TestGemmParts has the same results, to the bit, however many threads share
// the work and wherever C lies: past the caches if rows of it begin with a line.
func TestGemmParts(t *testing.T) {
	p := workers.New(0)
	defer p.Close()
	defer func(n int) { tileLimits.streamC = n }(tileLimits.streamC)
	tileLimits.streamC = 1 << 20
	const edge = 16
	eachGemmLevel(t, func(t *testing.T) {
		for _, s := range [][3]int{{533, 5, 608}, {150, 700, 600}, {15, 300, 4000}, {8, 400, 2000}} {
			m, k, n := s[0], s[1], s[2]
			a, b := make([]float32, m*k), make([]float32, k*n)
			for i := range a {
				a[i] = normal(i)
			}
			for i := range b {
				b[i] = normal(i)
			}
			var want []float32
			for shift := range 2 {
				for _, p := range []*workers.Pool{nil, p} {
					all, err := memory.Floats(m*n + 2*edge)
					if err != nil {
						t.Fatal(err)
					}
					for i := range all {
						all[i] = float32(math.NaN())
					}
					c := all[edge+shift:][:m*n]
					g := Gemm{M: m, N: n, K: k, A: a, B: b, C: c}
					g.Run(p)
					if want == nil {
						want = c
					}
					for i, v := range c {
						if math.Float32bits(v) != math.Float32bits(want[i]) {
							t.Fatalf("%v, %d threads, shift %d: element %d is %v, was %v", s, p.Threads(), shift, i, v, want[i])
						}
					}
					for i, v := range all {
						if (i < edge+shift || i >= edge+shift+m*n) && v == v {
							t.Fatalf("%v: wrote %v beside C", s, v)
						}
					}
				}
			}
			// One row suffices to find a product that is always wrong.
			for j := range n {
				sum, size := 0.0, 0.0
				for q := range k {
					x := float64(a[(m-1)*k+q]) * float64(b[q*n+j])
					sum += x
					size += math.Abs(x)
				}
				if got := float64(want[(m-1)*n+j]); !(math.Abs(got-sum) <= size*(4+math.Sqrt(float64(k)))*0x1p-24) {
					t.Fatalf("%v: column %d of the last row is %v, want %v", s, j, got, sum)
				}
			}
		}
	})
}

func TestGemmBatch(t *testing.T) {
	p := workers.New(4)
	defer p.Close()
	eachGemmLevel(t, func(t *testing.T) {
		for _, c := range []gemmCase{
			{m: 3, k: 4, n: 5, batch: 7, epilogue: true},
			{m: 17, k: 65, n: 40, batch: 3, transB: true, bias: true},
			{m: 17, k: 65, n: 40, batch: 5, sharedB: true, accumulate: true},
			{m: 70, k: 128, n: 200, batch: 6, transA: true, epilogue: true},
			{m: 1, k: 128, n: 100, batch: 20, epilogue: true},
			{m: 5, k: 0, n: 6, batch: 2, bias: true},
		} {
			c.run(t, nil)
			c.run(t, p)
		}
	})
}

// TestGemmSpecialValues requires that no product is skipped because a factor is zero.
func TestGemmSpecialValues(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	eachGemmLevel(t, func(t *testing.T) {
		for _, s := range [][3]int{{1, 5, 40}, {5, 5, 1}, {4, 3, 4}, {20, 70, 50}, {2, 300, 300}} {
			m, k, n := s[0], s[1], s[2]
			for _, special := range []float32{inf, nan} {
				for _, inA := range []bool{false, true} {
					a, b, c := make([]float32, m*k), make([]float32, k*n), make([]float32, m*n)
					for i := range b {
						b[i] = 1
					}
					x, y := m/2, n/2
					if inA {
						a[x*k+k/2] = special // every product of this row
					} else {
						b[k/2*n+y] = special // zero times it in every row
					}
					g := Gemm{M: m, N: n, K: k, A: a, B: b, C: c}
					g.Run(nil)
					for i := range m {
						for j := range n {
							want := float32(0)
							switch {
							case inA && i == x:
								want = special
							case !inA && j == y:
								want = nan // 0·Inf or 0·NaN
							}
							if got := c[i*n+j]; got != want && !(got != got && want != want) {
								t.Fatalf("%v, %v in A %v: C[%d][%d] is %v, want %v", s, special, inA, i, j, got, want)
							}
						}
					}
				}
			}
		}
	})
}

func TestGemmRefuses(t *testing.T) {
	x := make([]float32, 100)
	good := Gemm{M: 4, N: 5, K: 6, A: x[:24], B: x[:30], C: make([]float32, 20)}
	good.Run(nil)
	for name, spoil := range map[string]func(g *Gemm){
		"negative size":    func(g *Gemm) { g.M = -1 },
		"negative K":       func(g *Gemm) { g.K = -1 },
		"negative batch":   func(g *Gemm) { g.Batch = -1 },
		"short A":          func(g *Gemm) { g.A = g.A[:23] },
		"short B":          func(g *Gemm) { g.B = g.B[:29] },
		"short C":          func(g *Gemm) { g.C = g.C[:19] },
		"no A":             func(g *Gemm) { g.A = nil },
		"short bias":       func(g *Gemm) { g.Bias = x[:4] },
		"narrow rows of C": func(g *Gemm) { g.CRow = 4 },
		"negative stride":  func(g *Gemm) { g.ARow, g.ACol = -6, 1 },
		"stride overflow":  func(g *Gemm) { g.ARow, g.ACol = math.MaxInt/2+1, math.MaxInt/2+1 },
		"size overflow":    func(g *Gemm) { g.M, g.ARow, g.ACol = math.MaxInt, math.MaxInt, 1 },
		"batch overlap":    func(g *Gemm) { g.Batch, g.CStride, g.C = 2, 19, x },
		"batch of A":       func(g *Gemm) { g.Batch, g.AStride, g.CStride, g.C = 2, 1, 20, x },
	} {
		t.Run(name, func(t *testing.T) {
			g := good
			spoil(&g)
			defer func() {
				if recover() == nil {
					t.Error("accepted")
				}
			}()
			g.Run(nil)
		})
	}
}

// TestGemmConcurrent has several products share the buffers and the pool.
func TestGemmConcurrent(t *testing.T) {
	p := workers.New(3)
	defer p.Close()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 3 {
				gemmCase{m: 50 + i, k: 200, n: 190 - i, transB: i%2 == 0, epilogue: true}.check(t, p)
			}
		}()
	}
	wg.Wait()
}

func BenchmarkGemm(b *testing.B) {
	p := workers.New(0)
	defer p.Close()
	for _, s := range [][3]int{{64, 64, 64}, {128, 128, 128}, {256, 256, 256}, {512, 512, 512}, {1000, 1000, 1000}, {1024, 1024, 1024},
		{2048, 2048, 2048}, {1, 4096, 4096}, {8, 4096, 4096}, {4096, 8, 4096}, {4096, 4096, 8}} {
		for _, pool := range []*workers.Pool{nil, p} {
			b.Run(fmt.Sprintf("m=%d/k=%d/n=%d/threads=%d", s[0], s[1], s[2], pool.Threads()), func(b *testing.B) {
				var m [3][]float32
				for i, n := range []int{s[0] * s[1], s[1] * s[2], s[0] * s[2]} {
					m[i], _ = memory.Floats(n)
					for q := range m[i] {
						m[i][q] = normal(q)
					}
				}
				g := Gemm{M: s[0], K: s[1], N: s[2], A: m[0], B: m[1], C: m[2]}
				for b.Loop() {
					g.Run(pool)
				}
				ns := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
				b.ReportMetric(2*float64(s[0])*float64(s[1])*float64(s[2])/ns, "GFLOP/s")
				b.ReportMetric(4*float64(len(m[0])+len(m[1])+len(m[2]))/ns, "GB/s")
			})
		}
	}
}
