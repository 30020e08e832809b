package simd

import (
	"fmt"
	"math"
	"testing"

	"github.com/rayo-go/rayo/internal/workers"
)

// exact returns the row operation in float64, and for each element what its
// error bound in units of 2^-23 is relative to.
func (o *RowOp) exact(x []float32) (want, magnitude []float64) {
	n := float64(len(x))
	m, sum, squares := math.Inf(-1), 0.0, 0.0
	for _, v := range x {
		m = max(m, float64(v))
		sum += float64(v)
		squares += float64(v) * float64(v)
	}
	mean, exps, m2 := sum/n, 0.0, 0.0
	for _, v := range x {
		exps += math.Exp(float64(v) - m)
		m2 += (float64(v) - mean) * (float64(v) - mean)
	}
	for i, v := range x {
		v := float64(v)
		var w, size float64
		switch o.Kind {
		case RowSoftmax:
			w = math.Exp(v-m) / exps
			size = w * (1 + math.Abs(v-m)/2)
		case RowLogSoftmax:
			w = v - m - math.Log(exps)
			size = math.Abs(v-m) + math.Log(exps) + 1
		case RowLayerNorm:
			w = (v - mean) / math.Sqrt(m2/n+float64(o.Eps))
			size = math.Abs(w) + 1
		case RowRMSNorm:
			w = v / math.Sqrt(squares/n+float64(o.Eps))
			size = math.Abs(w)
		}
		if o.Kind >= RowLayerNorm && o.Gamma != nil {
			w *= float64(o.Gamma[i])
			size *= math.Abs(float64(o.Gamma[i]))
		}
		if o.Kind >= RowLayerNorm && o.Beta != nil {
			w += float64(o.Beta[i])
			size += math.Abs(float64(o.Beta[i]))
		}
		want, magnitude = append(want, w), append(magnitude, size)
	}
	return want, magnitude
}

func rowOps(cols int) []RowOp {
	gamma, beta := make([]float32, cols), make([]float32, cols)
	uniform(gamma, -2, 2)
	uniform(beta, -2, 2)
	ops := []RowOp{{Kind: RowSoftmax}, {Kind: RowLogSoftmax}}
	for _, k := range []RowKind{RowLayerNorm, RowRMSNorm} {
		for i := range 4 {
			o := RowOp{Kind: k, Eps: 1e-5}
			if i&1 != 0 {
				o.Gamma = gamma
			}
			if i&2 != 0 {
				o.Beta = beta
			}
			ops = append(ops, o)
		}
	}
	return ops
}

func TestRows(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, cols := range lengths() {
			rows := 1 + cols%3
			for i, o := range rowOps(cols) {
				x, xok := guarded(t, rows*cols, cols%3)
				dst, ok := guarded(t, rows*cols, cols%5)
				uniform(x, -20, 30)
				if cols%2 == 1 {
					uniform(x, 1000, 1001)
				}
				o.Rows(nil, dst, x, rows, cols)
				ok()
				xok()
				for r := range rows {
					want, size := o.exact(x[r*cols:][:cols])
					for j, w := range want {
						if g := dst[r*cols+j]; !near(g, w, 8*0x1p-23*size[j]+bound(cols)*math.Abs(w)) {
							t.Fatalf("operation %d, row %d of %d, column %d: %v, not %v", i, r, cols, j, g, w)
						}
					}
				}
				// In place.
				o.Rows(nil, x, x, rows, cols)
				for j, w := range dst {
					if x[j] != w {
						t.Fatalf("operation %d in place differs at %d of %d: %v, not %v", i, j, cols, x[j], w)
					}
				}
			}
		}
	})
}

func TestRowsSpecialValues(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	fill := func(n int, v float32) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = v
		}
		return x
	}
	eachLevel(t, func(t *testing.T) {
		for _, n := range []int{1, 5, 16, 33, 100, 2*ReduceBlock + 3} {
			for _, v := range []float32{nan, inf, -inf} {
				for _, at := range []int{0, n / 2, n - 1} {
					for _, o := range rowOps(n)[:6] {
						x, dst := fill(n, 1), make([]float32, n)
						x[at] = v
						o.Row(dst, x)
						all := v != v || o.Kind != RowRMSNorm
						for i, g := range dst {
							switch {
							case (o.Kind == RowSoftmax || o.Kind == RowLogSoftmax) && v == -inf && n > 1:
								want := 1 / float64(n-1)
								if i == at {
									want = 0
								}
								if o.Kind == RowLogSoftmax {
									want = math.Log(want)
								}
								if !near(g, want, 1e-5*math.Abs(want)) {
									t.Fatalf("kind %d of %d with %v at %d: %v at %d, not %v", o.Kind, n, v, at, g, i, want)
								}
							case all || i == at:
								if g == g {
									t.Fatalf("kind %d of %d with %v at %d: %v at %d, not NaN", o.Kind, n, v, at, g, i)
								}
							}
						}
					}
				}
			}
			// A block with only -Inf beside finite blocks.
			x, dst := fill(n, -inf), make([]float32, n)
			Softmax(nil, dst, x, 1, n)
			if dst[0] == dst[0] {
				t.Errorf("softmax of %d times -Inf: %v, not NaN", n, dst[0])
			}
			x[n-1] = -3
			Softmax(nil, dst, x, 1, n)
			if dst[n-1] != 1 || n > 1 && dst[0] != 0 {
				t.Errorf("softmax of %d times -Inf and one number: %v and %v", n, dst[0], dst[n-1])
			}
			// Blocks with very different maxima.
			x = fill(n, -80)
			x[n-1] = 80
			Softmax(nil, dst, x, 1, n)
			if dst[n-1] != 1 || n > 1 && dst[0] != 0 {
				t.Errorf("softmax of %d times -80 and one 80: %v and %v", n, dst[0], dst[n-1])
			}
		}
	})
}

// A row must not depend on its neighbours, nor on whether it has any.
func TestRowsAlone(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for _, cols := range []int{1, 2, 5, 16, 17, 40, 130, 1000, 3000} {
			rows := 150
			x := make([]float32, rows*cols)
			uniform(x, -20, 30)
			for i := range 5 {
				x[i*cols*7+i%cols] = []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 3e38, 1e-30}[i]
			}
			for i, o := range rowOps(cols) {
				if rows*cols > 10_000 && !sampled(3) {
					continue
				}
				dst, ok := guarded(t, rows*cols, 1)
				one := make([]float32, cols)
				o.Rows(nil, dst, x, rows, cols)
				ok()
				for r := range rows {
					o.Row(one, x[r*cols:][:cols])
					for j, w := range one {
						if g := dst[r*cols+j]; g != w && (g == g || w == w) {
							t.Fatalf("operation %d of %d columns: row %d, column %d is %v, alone %v", i, cols, r, j, g, w)
						}
					}
				}
			}
		}
	})
}

// The exponential must be as accurate as the catalogue says, and its tail in
// every place.
func TestRowsExp(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		for n := 1; n < 140; n++ {
			x, dst := make([]float32, n), make([]float32, n)
			uniform(x, -110, 0)
			x[n/2] = float32(math.Inf(-1))
			x[0] = 0
			s := rowKernel().expStore(&dst[0], &x[0], n, 0)
			sum := 0.0
			for i, v := range x {
				w := math.Exp(float64(v))
				sum += w
				ulp := math.Abs(float64(math.Nextafter32(float32(w), 2)) - float64(float32(w)))
				if e := math.Abs(float64(dst[i]) - w); e > 1.5*ulp {
					t.Fatalf("exp(%v) = %v, not %v: %.2f ulp", v, dst[i], w, e/ulp)
				}
			}
			for name, got := range map[string]float32{"expStore": s, "expSum": rowKernel().expSum(&x[0], n, 0)} {
				if !near(got, sum, 1e-6*sum) {
					t.Fatalf("%s of %d: %v, not %v", name, n, got, sum)
				}
			}
		}
	})
}

func TestRowsThreads(t *testing.T) {
	p := workers.New(0)
	defer p.Close()
	x := make([]float32, 1<<20+77)
	uniform(x, -5, 5)
	for _, rows := range []int{1, 3, 64, 1 << 14} {
		cols := len(x) / rows
		for i, o := range rowOps(cols) {
			if !sampled(3) {
				continue
			}
			a, b := make([]float32, rows*cols), make([]float32, rows*cols)
			o.Rows(nil, a, x, rows, cols)
			o.Rows(p, b, x, rows, cols)
			for j := range a {
				if a[j] != b[j] {
					t.Fatalf("operation %d of %d rows depends on the threads: %v or %v at %d", i, rows, a[j], b[j], j)
				}
			}
		}
	}
}

func BenchmarkSoftmax(b *testing.B) {
	x := make([]float32, 10_000_000)
	dst := make([]float32, len(x))
	uniform(x, -5, 5)
	for _, threads := range []int{1, 2} {
		p := workers.New(threads)
		for _, n := range benchSizes {
			rows, cols := max(1, n/1000), min(n, 1000)
			b.Run(fmt.Sprintf("rows=%d/cols=%d/threads=%d", rows, cols, threads), func(b *testing.B) {
				b.SetBytes(int64(8 * n))
				for b.Loop() {
					Softmax(p, dst, x, rows, cols)
				}
			})
		}
		b.Run(fmt.Sprintf("rows=1/cols=10000000/threads=%d", threads), func(b *testing.B) {
			b.SetBytes(80_000_000)
			for b.Loop() {
				Softmax(p, dst, x, 1, 10_000_000)
			}
		})
		p.Close()
	}
}
