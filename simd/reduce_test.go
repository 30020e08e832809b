package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/rayo-go/rayo/internal/workers"
)

// eachLevel runs f once for every level of this machine, the reductions, row
// operations, products and transposes using its kernels meanwhile.
func eachLevel(t *testing.T, f func(t *testing.T)) {
	for _, l := range Supported() {
		t.Run(l.String(), func(t *testing.T) {
			defer useKernels(active)
			useKernels(l)
			f(t)
		})
	}
}

// guarded returns n elements that lie odd elements behind an aligned address
// between NaNs, and a function that fails the test if a guard has changed.
// If odd is aligned, they begin at a cache line.
func guarded(t *testing.T, n, odd int) ([]float32, func()) {
	t.Helper()
	const margin = 32
	b := make([]float32, n+max(odd, 16)+2*margin)
	if odd == aligned {
		odd = int(-uintptr(unsafe.Pointer(&b[margin]))%64) / 4
	}
	nan := float32(math.NaN())
	for i := range b {
		b[i] = nan
	}
	x := b[margin+odd:][:n:n]
	return x, func() {
		t.Helper()
		for i, v := range b {
			if (i < margin+odd || i >= margin+odd+n) && v == v {
				t.Fatalf("element %d, outside of %d, was written", i-margin-odd, n)
			}
		}
	}
}

const aligned = -1

// lengths are around the widths of vectors, loops and blocks.
func lengths() []int {
	var ns []int
	for n := 0; n <= 300; n++ {
		ns = append(ns, n)
	}
	return append(ns, 511, 512, 513, 997, 1024, 4099, ReduceBlock-1, ReduceBlock, ReduceBlock+1, 3*ReduceBlock+77)
}

// exact returns what r should give in float64 and the magnitude that the error
// bound refers to.
func (r Reduction) exact(x, y []float32, ddof int) (want, magnitude float64) {
	n := float64(len(x))
	var sum, abs, squares float64
	for i, v := range x {
		v := float64(v)
		w := v
		if r == ReduceDot {
			w *= float64(y[i])
		}
		sum += w
		abs += math.Abs(w)
		squares += v * v
	}
	extreme := func(less func(a, b float64) bool, of func(float64) float64) float64 {
		if n == 0 {
			return math.NaN()
		}
		m := of(float64(x[0]))
		for _, v := range x {
			v := of(float64(v))
			if v != v {
				return v
			}
			if less(m, v) {
				m = v
			}
		}
		return m
	}
	id := func(v float64) float64 { return v }
	switch r {
	case ReduceSumAbs:
		return abs, abs
	case ReduceSumSquares:
		return squares, squares
	case ReduceNorm:
		return math.Sqrt(squares), math.Sqrt(squares)
	case ReduceMean:
		return sum / n, abs / n
	case ReduceVar:
		mean, m2 := sum/n, 0.0
		for _, v := range x {
			m2 += (float64(v) - mean) * (float64(v) - mean)
		}
		v := m2 / max(0, n-float64(ddof))
		return v, v
	case ReduceMax:
		return extreme(func(a, b float64) bool { return a < b }, id), 0
	case ReduceMin:
		return extreme(func(a, b float64) bool { return a > b }, id), 0
	case ReduceMaxAbs:
		if n == 0 {
			return 0, 0
		}
		return extreme(func(a, b float64) bool { return a < b }, math.Abs), 0
	case ReduceLogSumExp:
		top, exps := extreme(func(a, b float64) bool { return a < b }, id), 0.0
		if n == 0 {
			return math.Inf(-1), 0
		}
		if math.IsInf(top, 0) {
			return top, 0
		}
		for _, v := range x {
			exps += math.Exp(float64(v) - top)
		}
		want := top + math.Log(exps)
		return want, max(1, math.Abs(want))
	}
	return sum, abs
}

// exactIndex returns the index that a reduction to an index must give.
func (r Reduction) exactIndex(x []float32) int {
	at := -1
	for i, v := range x {
		switch {
		case v != v:
			return i
		case at < 0, r == ReduceArgMax && v > x[at], r == ReduceArgMin && v < x[at]:
			at = i
		}
	}
	return at
}

// bound is the largest error that Reduction documents for n terms.
func bound(n int) float64 { return 0x1p-23 * (8 + float64(min(n, ReduceBlock))/32) }

func near(got float32, want, tolerance float64) bool {
	g := float64(got)
	if want != want || math.IsInf(float64(float32(want)), 0) {
		return g != g && want != want || g == float64(float32(want))
	}
	return math.Abs(g-want) <= tolerance+math.Abs(want)*0x1p-24+0x1p-149
}

func uniform(x []float32, lo, hi float64) {
	for i := range x {
		x[i] = float32(lo + (hi-lo)*rand.Float64())
	}
}

func TestReduce(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, n := range lengths() {
			x, xok := guarded(t, n, n%5)
			y, yok := guarded(t, n, n%3)
			uniform(x, -1, 3)
			uniform(y, -2, 2)
			for r := range numReductions {
				var other []float32
				if r == ReduceDot {
					other = y
				}
				if r == ReduceArgMax || r == ReduceArgMin {
					if got, want := r.Index(Fold(nil, r, x, nil)), r.exactIndex(x); got != want {
						t.Fatalf("%v of %d: %d, not %d", r, n, got, want)
					}
					continue
				}
				want, magnitude := r.exact(x, other, 0)
				if got := Reduce(nil, r, x, other); !near(got, want, bound(n)*magnitude) {
					t.Fatalf("%v of %d: %v, not %v", r, n, got, want)
				}
			}
			xok()
			yok()
		}
	})
}

// Put a special value at every position of a vector and of a loop.
func TestReduceSpecialValues(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	eachLevel(t, func(t *testing.T) {
		for _, n := range []int{1, 2, 7, 15, 16, 17, 31, 64, 100, 129, 263, ReduceBlock + 19} {
			x, y := make([]float32, n), make([]float32, n)
			stride := 1
			if n > 300 {
				stride = n / 12
			}
			for at := 0; at < n; at += stride {
				for _, v := range []float32{nan, -nan, inf, -inf, -0x1p-149, 3e38, -3e38} {
					if n > 64 && !sampled(4) {
						continue
					}
					uniform(x, 0.5, 1)
					uniform(y, 0.5, 1)
					x[at] = v
					if at > 0 && at%3 == 0 {
						x[at-1] = v // the first of two
					}
					for r := range numReductions {
						if r == ReduceArgMax || r == ReduceArgMin {
							if got, want := r.Index(Fold(nil, r, x, nil)), r.exactIndex(x); got != want {
								t.Fatalf("%v of %d with %v at %d: %d, not %d", r, n, v, at, got, want)
							}
							continue
						}
						want, magnitude := r.exact(x, y, 0)
						if r == ReduceVar && !finite(v) {
							want = math.NaN()
						}
						var other []float32
						if r == ReduceDot {
							other = y
						}
						if got := Reduce(nil, r, x, other); !near(got, want, bound(n)*magnitude) {
							t.Fatalf("%v of %d with %v at %d: %v, not %v", r, n, v, at, got, want)
						}
					}
				}
			}
		}
	})
}

// TestReduceFunctions compares the functions of single slices with the exact results, also of an empty slice and with
// a NaN.
func TestReduceFunctions(t *testing.T) {
	values := map[Reduction]func(x []float32) float32{ReduceSum: Sum, ReduceMean: Mean, ReduceMax: Max, ReduceMin: Min,
		ReduceVar: func(x []float32) float32 { return Var(x, 1) }}
	eachLevel(t, func(t *testing.T) {
		for _, n := range []int{0, 2, 15, 100, ReduceBlock + 19} {
			for _, special := range []bool{false, true} {
				x := make([]float32, n)
				uniform(x, 0.5, 1)
				if special && n > 0 {
					x[n/2] = float32(math.NaN())
				}
				for r, f := range values {
					want, magnitude := r.exact(x, nil, 1)
					if got := f(x); !near(got, want, bound(n)*magnitude) {
						t.Errorf("%v of %d: %v, not %v", r, n, got, want)
					}
				}
				if got, want := [2]int{ArgMax(x), ArgMin(x)}, [2]int{ReduceArgMax.exactIndex(x), ReduceArgMin.exactIndex(x)}; got != want {
					t.Errorf("indices of the extremes of %d: %d, not %d", n, got, want)
				}
			}
		}
	})
}

// TestReduceRange checks values whose sums overflow or underflow within a block.
func TestReduceRange(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, n := range []int{3, 200, 2 * ReduceBlock} {
			x, y := make([]float32, n), make([]float32, n)
			for _, s := range []float64{3e38, 1e30, 1e-30, 1e-44} {
				for i := range x {
					x[i] = float32(s * (1 - 2*float64(i%2)))
					y[i] = 1
				}
				for r := range ReduceArgMax {
					want, magnitude := r.exact(x, y, 0)
					var other []float32
					if r == ReduceDot {
						other = y
					}
					if got := Reduce(nil, r, x, other); !near(got, want, bound(n)*magnitude) {
						t.Errorf("%v of %d times ±%g: %v, not %v", r, n, s, got, want)
					}
				}
			}
		}
	})
}

func TestVarOfDistantMean(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, n := range []int{2, 33, 1000, 3*ReduceBlock + 5} {
			x := make([]float32, n)
			uniform(x, 10000, 10001)
			for _, ddof := range []int{0, 1} {
				want, _ := ReduceVar.exact(x, nil, ddof)
				if got := Var(x, ddof); math.Abs(float64(got)-want) > 1e-4*want {
					t.Errorf("variance of %d, ddof %d: %v, not %v", n, ddof, got, want)
				}
			}
		}
	})
	if v := Var([]float32{1}, 1); v == v {
		t.Errorf("variance of one element with ddof 1: %v, not NaN", v)
	}
	if v := Var([]float32{1, 2}, 2); !math.IsInf(float64(v), 1) {
		t.Errorf("variance of two elements with ddof 2: %v, not +Inf", v)
	}
}

func TestReduceThreads(t *testing.T) {
	p := workers.New(0)
	defer p.Close()
	x, y := make([]float32, 1<<20+77), make([]float32, 1<<20+77)
	uniform(x, -1, 3)
	uniform(y, -1, 1)
	for r := range numReductions {
		var other []float32
		if r == ReduceDot {
			other = y
		}
		if one, all := Fold(nil, r, x, other), Fold(p, r, x, other); one != all {
			t.Errorf("%v: %+v on one thread, %+v on all", r, one, all)
		}
		for _, rows := range []int{1, 3, 64, 1 << 14} {
			if !sampled(2) {
				continue
			}
			cols := len(x) / rows
			if r >= ReduceArgMax {
				a, b := make([]int32, rows), make([]int32, rows)
				ReduceRowsIndex(nil, r, a, x, rows, cols)
				ReduceRowsIndex(p, r, b, x, rows, cols)
				if fmt.Sprint(a) != fmt.Sprint(b) {
					t.Errorf("%v of %d rows depends on the threads", r, rows)
				}
				continue
			}
			a, b := make([]float32, rows), make([]float32, rows)
			ReduceRows(nil, r, 0, a, x, other, rows, cols)
			ReduceRows(p, r, 0, b, x, other, rows, cols)
			if fmt.Sprint(a) != fmt.Sprint(b) {
				t.Errorf("%v of %d rows depends on the threads", r, rows)
			}
		}
	}
}

func TestReduceRows(t *testing.T) {
	nan := float32(math.NaN())
	eachLevel(t, func(t *testing.T) {
		for _, rows := range []int{0, 1, 2, 5, 33, 70} {
			for _, cols := range []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 100, 257, ReduceBlock + 3} {
				x, xok := guarded(t, rows*cols, cols%3)
				y, yok := guarded(t, rows*cols, 1)
				uniform(x, -2, 3)
				uniform(y, -1, 1)
				for i := range x {
					switch rand.IntN(500) {
					case 0:
						x[i] = nan
					case 1:
						x[i] = 3e38
					case 2:
						x[i] = float32(math.Inf(-1))
					}
				}
				if rows > 1 && cols > 1 {
					for i := range cols {
						x[cols+i] = 1e-30
					}
				}
				for r := range numReductions {
					var other []float32
					if r == ReduceDot {
						other = y
					}
					got, ok := guarded(t, rows, 3)
					index := make([]int32, rows)
					if r >= ReduceArgMax {
						ReduceRowsIndex(nil, r, index, x, rows, cols)
					} else {
						ReduceRows(nil, r, 1, got, x, other, rows, cols)
					}
					ok()
					for i := range rows {
						row, o := x[i*cols:][:cols], []float32(nil)
						if r == ReduceDot {
							o = y[i*cols:][:cols]
						}
						q := Fold(nil, r, row, o)
						if r >= ReduceArgMax {
							if int(index[i]) != r.Index(q) {
								t.Fatalf("%v of row %d of %dx%d: %d, not %d", r, i, rows, cols, index[i], r.Index(q))
							}
						} else if want := r.Value(q, 1); got[i] != want && (got[i] == got[i] || want == want) {
							t.Fatalf("%v of row %d of %dx%d: %v, not %v", r, i, rows, cols, got[i], want)
						}
					}
				}
				xok()
				yok()
			}
		}
	})
}

func TestReducePanicsOnLengths(t *testing.T) {
	x := make([]float32, 10)
	for name, f := range map[string]func(){
		"dot":        func() { Dot(x, x[:9]) },
		"short rows": func() { ReduceRows(nil, ReduceSum, 0, x, x, nil, 3, 4) },
		"overflow":   func() { ReduceRows(nil, ReduceSum, 0, x, x, nil, math.MaxInt/2, 4) },
		"negative":   func() { ReduceRows(nil, ReduceSum, 0, x, x, nil, -1, -1) },
		"softmax":    func() { Softmax(nil, x, x, 2, 6) },
		"transpose":  func() { Transpose(nil, x, x, 11, 1) },
		"top-k":      func() { TopK(nil, x, nil, x, 1, 5, 6) },
		"gather":     func() { Gather(nil, x, x, make([]int32, 3), 1, 2, 5, 0) },
		"rope":       func() { Rope{Positions: 1, Dim: 4, Rotary: 3}.Run(nil, x, x) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

// Blocks and JoinAll must give the results of Block and Join, for all contents of the blocks.
func TestReduceBlocks(t *testing.T) {
	special := []float32{float32(math.NaN()), float32(math.Inf(1)), 3e38, 1e-30, float32(math.Copysign(0, -1))}
	eachLevel(t, func(t *testing.T) {
		for _, blocks := range []int{0, 1, 2, blocksAtOnce - 1, blocksAtOnce, 2*blocksAtOnce + 1} {
			for _, last := range []int{1, 100, ReduceBlock} {
				n := max(0, blocks-1)*ReduceBlock + min(blocks, 1)*last
				x, y := make([]float32, n), make([]float32, n)
				uniform(x, -1, 3)
				uniform(y, -1, 1)
				for i := range n / ReduceBlock {
					for k := range ReduceBlock {
						if i%6 < len(special) && (k == 77 || i%6 > 2) {
							x[i*ReduceBlock+k] = special[i%6]
						}
					}
				}
				for r := range numReductions {
					var other []float32
					if r == ReduceDot {
						other = y
					}
					got := make([]Partial, blocks)
					r.Blocks(got, x, other, 0)
					var joined Partial
					for i := range got {
						want := r.Block(blockOf(x, i), blockOf(other, i), i*ReduceBlock)
						if found := r.Search(x, got[i]); fmt.Sprint(found) != fmt.Sprint(want) {
							t.Fatalf("%v: block %d of %d is %+v, not %+v", r, i, blocks, found, want)
						}
						joined = r.Join(joined, want)
					}
					if all := r.Search(x, r.JoinAll(Partial{}, got)); fmt.Sprint(all) != fmt.Sprint(joined) {
						t.Fatalf("%v of %d blocks: %+v, not %+v", r, blocks, all, joined)
					}
				}
			}
		}
	})
}
