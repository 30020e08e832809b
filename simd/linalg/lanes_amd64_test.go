//go:build amd64 && !noasm

package linalg

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// A laneCase is a group of matrices. spoiled is the mask of those that lock-step leaves out.
type laneCase struct {
	name              string
	rows, cols, count int
	in                []Matrix
	spoiled           uint8
}

// data returns the matrices one behind the other.
func (c *laneCase) data() []float32 {
	var x []float32
	for _, m := range c.in {
		for i := range m.Rows {
			x = append(x, m.row(i)...)
		}
	}
	return x
}

// poisoned returns count results of n elements, which hold a guard.
func (c *laneCase) poisoned(n int) []float32 {
	x := make([]float32, c.count*n)
	for i := range x {
		x[i] = guard
	}
	return x
}

// each compares the mask of the matrices that were left out with spoiled, and calls check for each of the others. The n
// elements of the results of matrices that were left out must be as before.
func (c *laneCase) each(t *testing.T, bad uint8, check func(l int), out ...[]float32) {
	t.Helper()
	if bad != c.spoiled {
		t.Fatalf("%s: %08b are left out, want %08b", c.name, bad, c.spoiled)
	}
	for l := range c.count {
		if bad>>l&1 == 0 {
			check(l)
			continue
		}
		for _, x := range out {
			n := len(x) / c.count
			for _, v := range x[l*n : (l+1)*n] {
				if v != guard {
					t.Fatalf("%s: matrix %d is written", c.name, l)
				}
			}
		}
	}
}

// laneCases calls run with random matrices of many extents, where spoil has spoiled some.
func laneCases(t *testing.T, square bool, make func(r *rand.Rand, rows, cols int) Matrix, spoil func(r *rand.Rand, m Matrix), run func(c *laneCase, r *rand.Rand)) {
	testutil.Need(t, "avx2")
	if !Together(1, 1) {
		return // RAYO_SIMD names another level
	}
	r := testutil.Rand(t)
	sizes := []int{1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 64}
	for range trials(200) {
		c := &laneCase{rows: sizes[r.IntN(len(sizes))], count: 1 + r.IntN(Lanes)}
		if c.cols = c.rows; !square && r.IntN(2) == 0 {
			c.cols = sizes[r.IntN(len(sizes))]
		}
		for l := range c.count {
			m := make(r, c.rows, c.cols)
			if r.IntN(4) == 0 {
				spoil(r, m)
				c.spoiled |= 1 << l
			}
			c.in = append(c.in, m)
		}
		c.name = fmt.Sprintf("%d of %d×%d", c.count, c.rows, c.cols)
		run(c, r)
	}
}

// notFinite makes an element NaN or infinite.
func notFinite(r *rand.Rand, m Matrix) {
	x := []float64{math.NaN(), math.Inf(1), math.Inf(-1)}
	i := r.IntN(m.Rows)
	m.row(i)[r.IntN(min(i+1, m.Cols))] = float32(x[r.IntN(len(x))])
}

func normals(r *rand.Rand, rows, cols int) Matrix { return matrix(r, rows, cols, 0) }

// regular returns a matrix of low condition, with rows in any order.
func regular(r *rand.Rand, order, _ int) Matrix {
	m := normals(r, order, order)
	for i, at := range r.Perm(order) {
		m.row(i)[at] += 3 * float32(math.Sqrt(float64(order)))
	}
	return m
}

func TestCholeskyLanes(t *testing.T) {
	definite := func(r *rand.Rand, order, _ int) Matrix {
		g, a := normals(r, order, order+3), New(order, order)
		mul(nil, a, n(g), operand{g, true})
		return a
	}
	spoil := func(r *rand.Rand, m Matrix) {
		if k := r.IntN(m.Rows); r.IntN(2) == 0 {
			m.row(k)[k] = -1
		} else {
			notFinite(r, m)
		}
	}
	laneCases(t, true, definite, spoil, func(c *laneCase, r *rand.Rand) {
		for _, m := range c.in { // elements above the diagonal must not be read
			for i := range m.Rows {
				for j := i + 1; j < m.Cols; j++ {
					m.row(i)[j] = float32(math.NaN())
				}
			}
		}
		out := c.poisoned(c.rows * c.rows)
		c.each(t, CholeskyLanes(out, c.data(), c.rows, c.count), func(l int) {
			a, f := c.in[l], packedAt(out, l, c.rows, c.rows)
			whole := dense{a.Rows, a.Rows, func(i, j int) float64 { return float64(a.row(max(i, j))[min(i, j)]) }}
			diff, size := residual(whole, of(f), of(f).t())
			check(t, "Cholesky of "+c.name, c.rows, diff, size)
			for i := range f.Rows {
				for _, v := range f.row(i)[i+1:] {
					if v != 0 {
						t.Fatalf("%s: %v above the diagonal", c.name, v)
					}
				}
			}
		}, out)
	})
}

// packedAt returns matrix l of those one behind the other.
func packedAt(x []float32, l, rows, cols int) Matrix {
	return Matrix{x[l*rows*cols : (l+1)*rows*cols], rows, cols, cols}
}

func TestLULanes(t *testing.T) {
	laneCases(t, false, normals, notFinite, func(c *laneCase, r *rand.Rand) {
		k := min(c.rows, c.cols)
		for l, m := range c.in {
			if c.cols > 1 && l%3 == 0 && c.spoiled>>l&1 == 0 { // a singular matrix is factored too
				for i := range c.rows {
					m.row(i)[1] = 2 * m.row(i)[0]
				}
			}
		}
		out, pivots := c.poisoned(c.rows*c.cols), make([]int32, k*c.count)
		c.each(t, LULanes(out, pivots, c.data(), c.rows, c.cols, c.count), func(l int) {
			a, f := c.in[l], packedAt(out, l, c.rows, c.cols)
			exchange(a, pivots[l*k:][:k])
			checkLU(t, "LU of "+c.name, a, f)
		}, out)
	})
}

func TestSolveLanes(t *testing.T) {
	singular := func(r *rand.Rand, m Matrix) {
		if r.IntN(2) == 0 {
			notFinite(r, m)
			return
		}
		k := r.IntN(m.Cols)
		for i := range m.Rows {
			m.row(i)[k] = 0
		}
	}
	laneCases(t, true, regular, singular, func(c *laneCase, _ *rand.Rand) {
		right := 1 + len(c.in)*c.rows%9
		b := c.poisoned(c.rows * right)
		for i := range b {
			b[i] = float32(i%17) - 8
		}
		x := c.poisoned(c.rows * right)
		c.each(t, SolveLanes(x, c.data(), b, c.rows, right, c.count), func(l int) {
			solution := packedAt(x, l, c.rows, right)
			diff, _ := residual(of(packedAt(b, l, c.rows, right)), of(c.in[l]), of(solution))
			_, sizeA := residual(of(c.in[l]), dense{c.rows, 0, nil}, dense{0, c.rows, nil})
			_, sizeX := residual(of(solution), dense{c.rows, 0, nil}, dense{0, right, nil})
			check(t, "solve of "+c.name, c.rows, diff, sizeA*sizeX)
		}, x)
	})
}

func TestQRLanes(t *testing.T) {
	laneCases(t, false, normals, notFinite, func(c *laneCase, r *rand.Rand) {
		for l, m := range c.in {
			if l%3 == 0 && c.spoiled>>l&1 == 0 {
				kind(nil, m, r.IntN(kinds))
			}
		}
		k := min(c.rows, c.cols)
		q, upper := c.poisoned(c.rows*k), c.poisoned(k*c.cols)
		c.each(t, QRLanes(q, upper, c.data(), c.rows, c.cols, c.count), func(l int) {
			checkQR(t, "QR of "+c.name, c.in[l], packedAt(q, l, c.rows, k), packedAt(upper, l, k, c.cols))
		}, q, upper)
	})
}

func TestEighLanes(t *testing.T) {
	laneCases(t, true, normals, notFinite, func(c *laneCase, r *rand.Rand) {
		for l, m := range c.in {
			if c.spoiled>>l&1 == 0 { // the last kinds can be too small, but for many elements
				kind(nil, m, r.IntN(min(kinds, 4+c.rows)))
			}
		}
		w, v := c.poisoned(c.rows), c.poisoned(c.rows*c.rows)
		c.each(t, EighLanes(w, v, c.data(), c.rows, c.count), func(l int) {
			checkEigh(t, "eigh of "+c.name, c.in[l], w[l*c.rows:][:c.rows], packedAt(v, l, c.rows, c.rows))
		}, w, v)
	})
}

func TestSVDLanes(t *testing.T) {
	laneCases(t, false, normals, notFinite, func(c *laneCase, r *rand.Rand) {
		k, left := min(c.rows, c.cols), uint8(0)
		for l, m := range c.in {
			if c.spoiled>>l&1 != 0 || r.IntN(3) > 0 {
				continue
			}
			kind(nil, m, r.IntN(kinds))
			left |= 1 << l // may be left, as of lower rank
		}
		u, s, vt := c.poisoned(c.rows*k), c.poisoned(k), c.poisoned(k*c.cols)
		bad := SVDLanes(u, s, vt, c.data(), c.rows, c.cols, c.count)
		c.spoiled |= bad & left
		c.each(t, bad, func(l int) {
			checkSVD(t, "SVD of "+c.name, c.in[l], packedAt(u, l, c.rows, k), s[l*k:][:k], packedAt(vt, l, k, c.cols))
		}, u, s, vt)
	})
}

func BenchmarkLanes(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, order := range []int{3, 4, 8, 16, 32, 48, 64, 80, 96} {
		a, x, out := New(Lanes*order, order), New(Lanes*order, order), New(Lanes*order, order)
		for l := range Lanes {
			g := matrix(r, order, order, 0)
			mul(nil, a.part(l*order, 0, order, order), n(g), t(g))
			copy(x.Data[l*order*order:], g.Data)
		}
		pivots, more, w := make([]int32, Lanes*order), New(Lanes*order, order), make([]float32, Lanes*order)
		for _, c := range []struct {
			name  string
			one   func(l int)
			lanes func()
		}{
			{"cholesky", func(l int) {
				o := out.part(l*order, 0, order, order)
				copy(o.Data, a.part(l*order, 0, order, order).Data)
				Cholesky(nil, o)
			}, func() { CholeskyLanes(out.Data, a.Data, order, Lanes) }},
			{"lu", func(l int) {
				o := out.part(l*order, 0, order, order)
				copy(o.Data, x.part(l*order, 0, order, order).Data)
				LU(nil, o, pivots[:order])
			}, func() { LULanes(out.Data, pivots, x.Data, order, order, Lanes) }},
			{"solve", func(l int) {
				o := out.part(l, 0, 1, order)
				copy(o.Data, a.row(l))
				Solve(nil, x.part(l*order, 0, order, order), Matrix{o.Data, order, 1, 1})
			}, func() { SolveLanes(out.Data[:Lanes*order], x.Data, a.Data, order, 1, Lanes) }},
			{"inv", func(l int) {
				o := out.part(l*order, 0, order, order)
				copy(o.Data, a.part(l*order, 0, order, order).Data)
				Solve(nil, x.part(l*order, 0, order, order), o)
			}, func() { SolveLanes(out.Data, x.Data, a.Data, order, order, Lanes) }},
			{"qr", func(l int) {
				q := NewQR(nil, x.part(l*order, 0, order, order))
				q.Q(nil, out.part(l*order, 0, order, order))
				q.R(more.part(l*order, 0, order, order))
			}, func() { QRLanes(out.Data, more.Data, x.Data, order, order, Lanes) }},
			{"eigh", func(l int) {
				Eigh(nil, x.part(l*order, 0, order, order), out.Data[:order], more.part(l*order, 0, order, order))
			}, func() { EighLanes(out.Data[:Lanes*order], more.Data, x.Data, order, Lanes) }},
			{"svd", func(l int) {
				SVD(nil, x.part(l*order, 0, order, order), out.part(l*order, 0, order, order), w[:order], more.part(l*order, 0, order, order))
			}, func() { SVDLanes(out.Data, w, more.Data, x.Data, order, order, Lanes) }},
		} {
			b.Run(fmt.Sprintf("%s/%d/one", c.name, order), func(b *testing.B) {
				for b.Loop() {
					for l := range Lanes {
						c.one(l)
					}
				}
			})
			b.Run(fmt.Sprintf("%s/%d/lanes", c.name, order), func(b *testing.B) {
				for b.Loop() {
					c.lanes()
				}
			})
		}
		b.Run(fmt.Sprintf("pack/%d", order), func(b *testing.B) {
			m := takeVectors(order * order)
			for b.Loop() {
				pack(m.data, a.Data, Lanes)
				unpack(out.Data, m.data, Lanes, 0)
			}
		})
	}
}
