package linalg

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/simd"
)

// identity is of an order.
func identity(order int) dense {
	return dense{order, order, func(i, j int) float64 {
		if i == j {
			return 1
		}
		return 0
	}}
}

// scaled is m with each column times a number.
func scaled(m dense, by []float32) dense {
	return dense{m.rows, m.cols, func(i, j int) float64 { return m.at(i, j) * float64(by[j]) }}
}

// kinds of matrices: random, of low rank, zeros, diagonal, graded, ones, of few eigenvalues, huge, tiny, a sawtooth, Hilbert's.
func kind(r *rand.Rand, a Matrix, kind int) {
	for i := range a.Rows {
		for j := range a.Cols {
			x := &a.row(i)[j]
			switch kind {
			case 1:
				*x = a.row(i)[j%3]
			case 2:
				*x = 0
			case 3:
				if i != j {
					*x = 0
				}
			case 4:
				*x = float32(math.Ldexp(float64(*x), -(i+j)/2))
			case 5:
				*x = 1
			case 6:
				*x = 0
				if i == j {
					*x = float32(1 + i%2)
				}
			case 7:
				*x *= 0x1p100
			case 8:
				*x *= 0x1p-120
			case 9: // a sawtooth, whose singular values fall by several powers of ten
				_, f := math.Modf(float64(i*a.Cols+j) * math.Phi)
				*x = float32(8*f - 4)
			case 10:
				*x = float32(1 / float64(i+j+1))
			}
		}
	}
}

const kinds = 11

func TestEigh(t *testing.T) {
	r, p := testutil.Rand(t), simd.NewPool(0)
	defer p.Close()
	for _, order := range orders {
		for k := range kinds {
			if testing.Short() && r.IntN(6) > 0 {
				continue
			}
			name := fmt.Sprintf("eigh of %d, kind %d", order, k)
			a := matrix(r, order, order, 1)
			kind(r, a, k)
			w, v := make([]float32, order), matrix(r, order, order, 2)
			if !Eigh(p, a, w, v) {
				t.Fatalf("%s: not finite", name)
			}
			v.guarded(t, name)
			checkEigh(t, name, a, w, v)
		}
	}
	if Eigh(p, Matrix{[]float32{1, 0, float32(math.NaN()), 1}, 2, 2, 2}, make([]float32, 2), New(2, 2)) {
		t.Error("NaN is not noticed")
	}
}

// checkEigh checks the order of the eigenvalues w, that the columns of v are orthonormal, and the product.
func checkEigh(t *testing.T, name string, a Matrix, w []float32, v Matrix) {
	t.Helper()
	order := a.Rows
	if !slices.IsSorted(w) {
		t.Fatalf("%s: %v does not rise", name, w)
	}
	diff, _ := residual(identity(order), of(v).t(), of(v))
	check(t, "orthogonality of "+name, order, diff, 1)
	whole := dense{order, order, func(i, j int) float64 { return float64(a.row(max(i, j))[min(i, j)]) }}
	diff, size := residual(whole, scaled(of(v), w), of(v).t())
	check(t, name, order, diff, size)
}

func TestSVD(t *testing.T) {
	r, p := testutil.Rand(t), simd.NewPool(0)
	defer p.Close()
	for range trials(60) {
		rows, cols, k := orders[r.IntN(len(orders))], orders[r.IntN(len(orders))], r.IntN(kinds)
		if r.IntN(2) == 0 {
			cols = rows
		}
		name := fmt.Sprintf("SVD of %d×%d, kind %d", rows, cols, k)
		a := matrix(r, rows, cols, 1)
		kind(r, a, k)
		least := min(rows, cols)
		s, u, vt := make([]float32, least), matrix(r, rows, least, 1), matrix(r, least, cols, 2)
		if !SVD(p, a, u, s, vt) {
			t.Fatalf("%s: not finite", name)
		}
		u.guarded(t, name)
		vt.guarded(t, name)
		checkSVD(t, name, a, u, s, vt)
	}
}

// checkSVD checks the order of the singular values s, that the vectors are orthonormal, and the product.
func checkSVD(t *testing.T, name string, a, u Matrix, s []float32, vt Matrix) {
	t.Helper()
	rows, cols, least := a.Rows, a.Cols, len(s)
	for i, v := range s {
		if !(v >= 0) || i > 0 && v > s[i-1] {
			t.Fatalf("%s: %v do not fall", name, s)
		}
	}
	diff, _ := residual(identity(least), of(u).t(), of(u))
	check(t, "U of "+name, max(rows, cols), diff, 1)
	diff, _ = residual(identity(least), of(vt), of(vt).t())
	check(t, "V of "+name, max(rows, cols), diff, 1)
	diff, size := residual(of(a), scaled(of(u), s), of(vt))
	check(t, name, max(rows, cols), diff, size)
}

func BenchmarkSpectral(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, threads := range []int{1, 2} {
		p := simd.NewPool(threads)
		for _, order := range []int{32, 64, 256, 1000} {
			a := matrix(r, order, order, 0)
			w, v, u := make([]float32, order), New(order, order), New(order, order)
			saw := New(order, order)
			kind(r, saw, 9)
			for name, run := range map[string]func(){
				"eigh":              func() { Eigh(p, a, w, v) },
				"svd":               func() { SVD(p, a, u, w, v) },
				"svd of a sawtooth": func() { SVD(p, saw, u, w, v) },
			} {
				b.Run(fmt.Sprintf("%s/%d/threads=%d", name, order, threads), func(b *testing.B) {
					for b.Loop() {
						run()
					}
				})
			}
		}
		p.Close()
	}
}
