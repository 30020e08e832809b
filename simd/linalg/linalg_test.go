package linalg

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/simd"
)

const epsilon = 0x1p-23

// orders are those around the sizes of blocks.
var orders = []int{1, 2, 3, 7, 8, 9, 31, 32, 33, 63, 65, 97, 130, 200, 259}

// trials returns the number of random cases, which is a quarter of n in a short run.
func trials(n int) int {
	if testing.Short() {
		return n / 4
	}
	return n
}

const guard = 777

// matrix returns normal numbers in rows that are gap elements apart, which hold a guard.
func matrix(r *rand.Rand, rows, cols, gap int) Matrix {
	m := Matrix{make([]float32, rows*(cols+gap)), rows, cols, cols + gap}
	for i := range m.Data {
		m.Data[i] = guard
	}
	for i := range rows {
		for j := range cols {
			m.row(i)[j] = float32(r.NormFloat64())
		}
	}
	return m
}

func (m Matrix) clone() Matrix {
	m.Data = append([]float32(nil), m.Data...)
	return m
}

// guarded reports a write between the rows.
func (m Matrix) guarded(t *testing.T, name string) {
	t.Helper()
	for i := range m.Rows {
		for _, v := range m.Data[i*m.Stride+m.Cols : (i+1)*m.Stride] {
			if v != guard {
				t.Fatalf("%s: row %d is written beyond its end", name, i)
			}
		}
	}
}

// dense is a matrix in float64.
type dense struct {
	rows, cols int
	at         func(i, j int) float64
}

func of(m Matrix) dense {
	return dense{m.Rows, m.Cols, func(i, j int) float64 { return float64(m.Data[i*m.Stride+j]) }}
}

func (d dense) t() dense {
	return dense{d.cols, d.rows, func(i, j int) float64 { return d.at(j, i) }}
}

// residual returns ‖want - Πfactors‖ and ‖want‖ in the norm of Frobenius.
func residual(want dense, a, b dense) (diff, size float64) {
	right := make([][]float64, a.cols)
	for k := range right {
		right[k] = make([]float64, want.cols)
		for j := range right[k] {
			right[k][j] = b.at(k, j)
		}
	}
	for i := range want.rows {
		row := make([]float64, want.cols)
		for k := range right {
			f := a.at(i, k)
			if f == 0 {
				continue
			}
			for j, v := range right[k] {
				row[j] += f * v
			}
		}
		for j, v := range row {
			w := want.at(i, j)
			diff += (v - w) * (v - w)
			size += w * w
		}
	}
	return math.Sqrt(diff), math.Sqrt(size)
}

func check(t *testing.T, name string, n int, diff, size float64) {
	t.Helper()
	if !(diff <= 30*float64(n)*epsilon*size) {
		t.Fatalf("%s: residual %.3g, the bound is %.3g", name, diff, 30*float64(n)*epsilon*size)
	}
}

func TestTriangles(t *testing.T) {
	r, p := testutil.Rand(t), simd.NewPool(0)
	defer p.Close()
	for range trials(200) {
		order, other, gap := orders[r.IntN(len(orders))], orders[r.IntN(len(orders))]*(1+r.IntN(3)), r.IntN(3)
		tr := Triangle{Upper: r.IntN(2) == 0, Trans: r.IntN(2) == 0, Unit: r.IntN(2) == 0}
		name := fmt.Sprintf("%+v of %d, %d others", tr, order, other)
		a := matrix(r, order, order, gap)
		for i := range order { // well conditioned
			for j := range order {
				a.row(i)[j] /= float32(order)
			}
			a.row(i)[i] += 2
		}
		full := dense{order, order, func(i, j int) float64 {
			switch {
			case i == j && tr.Unit:
				return 1
			case (j > i) == tr.Upper || i == j:
				return float64(a.row(i)[j])
			}
			return 0
		}}
		if tr.Trans {
			full = full.t()
		}
		b := matrix(r, order, other, gap)
		x := b.clone()
		tr.SolveLeft(p, a, x)
		x.guarded(t, name)
		diff, size := residual(of(b), full, of(x))
		check(t, "left "+name, order, diff, size)

		b = matrix(r, other, order, gap)
		x = b.clone()
		tr.SolveRight(p, a, x)
		x.guarded(t, name)
		diff, size = residual(of(b), of(x), full)
		check(t, "right "+name, order, diff, size)
	}
}

func TestCholesky(t *testing.T) {
	r, p := testutil.Rand(t), simd.NewPool(0)
	defer p.Close()
	for _, order := range orders {
		g := matrix(r, order, order+3, 0)
		a := New(order, order)
		mul(p, a, n(g), operand{g, true})
		whole := a.clone()
		for i := range order { // elements above the diagonal must not be read
			for j := i + 1; j < order; j++ {
				a.row(i)[j] = float32(math.NaN())
			}
		}
		if !Cholesky(p, a) {
			t.Fatalf("%d: not positive definite", order)
		}
		diff, size := residual(of(whole), of(a), of(a).t())
		check(t, fmt.Sprint("Cholesky of ", order), order, diff, size)
		for i := range order {
			for j := i + 1; j < order; j++ {
				if a.row(i)[j] != 0 {
					t.Fatalf("%d: element (%d, %d) is %v", order, i, j, a.row(i)[j])
				}
			}
		}
		k := r.IntN(order)
		whole.row(k)[k] = -1
		if Cholesky(p, whole) {
			t.Errorf("%d: indefinite, and not noticed", order)
		}
	}
}

func TestLU(t *testing.T) {
	r, p := testutil.Rand(t), simd.NewPool(0)
	defer p.Close()
	for range trials(100) {
		rows, cols, gap := orders[r.IntN(len(orders))], orders[r.IntN(len(orders))], r.IntN(3)
		name := fmt.Sprintf("LU of %d×%d", rows, cols)
		a := matrix(r, rows, cols, gap)
		f := a.clone()
		k := min(rows, cols)
		pivots := make([]int32, k)
		LU(p, f, pivots)
		f.guarded(t, name)
		exchange(a, pivots)
		checkLU(t, name, a, f)
	}
}

// checkLU compares the product of the factors in f with a, whose rows are exchanged.
func checkLU(t *testing.T, name string, a, f Matrix) {
	t.Helper()
	rows, cols, k := a.Rows, a.Cols, min(a.Rows, a.Cols)
	l := dense{rows, k, func(i, j int) float64 {
		switch {
		case i == j:
			return 1
		case i > j:
			return float64(f.row(i)[j])
		}
		return 0
	}}
	for i := range rows {
		for j := range min(i, k) {
			if v := f.row(i)[j]; !(v >= -1 && v <= 1) {
				t.Fatalf("%s: multiplier %v: no pivoting", name, v)
			}
		}
	}
	u := dense{k, cols, func(i, j int) float64 {
		if j < i {
			return 0
		}
		return float64(f.row(i)[j])
	}}
	diff, size := residual(of(a), l, u)
	check(t, name, max(rows, cols), diff, size)
}

func TestSolve(t *testing.T) {
	r, p := testutil.Rand(t), simd.NewPool(0)
	defer p.Close()
	for _, order := range orders {
		a, b := matrix(r, order, order, 1), matrix(r, order, 5, 2)
		f, x, pivots := a.clone(), b.clone(), make([]int32, order)
		LU(p, f, pivots)
		if !SolveLU(p, f, pivots, x) {
			t.Fatalf("%d: singular", order)
		}
		x.guarded(t, "solve")
		diff, _ := residual(of(b), of(a), of(x))
		_, sizeA := residual(of(a), dense{order, 0, nil}, dense{0, order, nil})
		_, sizeX := residual(of(x), dense{order, 0, nil}, dense{0, 5, nil})
		check(t, fmt.Sprint("solve of ", order), order, diff, sizeA*sizeX)
	}
	singular := New(3, 3)
	copy(singular.Data, []float32{1, 2, 3, 2, 4, 6, 1, 1, 1})
	pivots := make([]int32, 3)
	LU(p, singular, pivots)
	if SolveLU(p, singular, pivots, New(3, 1)) {
		t.Error("a singular matrix is solved")
	}
}

func TestQR(t *testing.T) {
	r, p := testutil.Rand(t), simd.NewPool(0)
	defer p.Close()
	for range trials(100) {
		rows, cols, gap := orders[r.IntN(len(orders))], orders[r.IntN(len(orders))], r.IntN(3)
		name := fmt.Sprintf("QR of %d×%d", rows, cols)
		a := matrix(r, rows, cols, gap)
		if r.IntN(8) == 0 { // a column that depends on another
			for i := range rows {
				a.row(i)[cols-1] = a.row(i)[0]
			}
		}
		k := min(rows, cols)
		f := NewQR(p, a)
		q, upper := matrix(r, rows, k, gap), matrix(r, k, cols, gap)
		f.Q(p, q)
		f.R(upper)
		q.guarded(t, name)
		upper.guarded(t, name)
		size := checkQR(t, name, a, q, upper)
		b := a.clone()
		f.MulQT(p, b)
		b.guarded(t, name)
		diff, _ := residual(of(upper), identity(k), of(b.part(0, 0, k, cols)))
		check(t, "QᵀA of "+name, max(rows, cols), diff, size)
	}
}

// checkQR compares the product of the factors with a, whose norm it returns, and checks that the columns of q are orthonormal
// and that r is a triangle.
func checkQR(t *testing.T, name string, a, q, r Matrix) (size float64) {
	t.Helper()
	diff, size := residual(of(a), of(q), of(r))
	check(t, name, max(a.Rows, a.Cols), diff, size)
	diff, _ = residual(identity(q.Cols), of(q).t(), of(q))
	check(t, "orthogonality of "+name, max(a.Rows, a.Cols), diff, 1)
	for i := range r.Rows {
		for j, v := range r.row(i)[:min(i, r.Cols)] {
			if v != 0 {
				t.Fatalf("%s: element (%d, %d) of R is %v", name, i, j, v)
			}
		}
	}
	return size
}

// Columns of 1e25 have squares beyond float32, those of 1e-30 below.
func TestQRScales(t *testing.T) {
	p := simd.NewPool(1)
	defer p.Close()
	for _, scale := range []float32{1e25, 1e-30} {
		a := New(3, 2)
		copy(a.Data, []float32{3 * scale, 1 * scale, 4 * scale, 2 * scale, 0, 2 * scale})
		f := NewQR(p, a)
		upper := New(2, 2)
		f.R(upper)
		if got := math.Abs(float64(upper.Data[0] / (5 * scale))); math.Abs(got-1) > 1e-6 {
			t.Errorf("scale %g: R begins with %v", scale, upper.Data[0])
		}
	}
}

func Benchmark(b *testing.B) {
	r, p := rand.New(rand.NewPCG(1, 2)), simd.NewPool(0)
	defer p.Close()
	for _, order := range []int{32, 64, 256, 1000} {
		g := matrix(r, order, order, 0)
		a := New(order, order)
		mul(p, a, n(g), t(g))
		f, pivots := New(order, order), make([]int32, order)
		for name, run := range map[string]func(){
			"cholesky": func() { copy(f.Data, a.Data); Cholesky(p, f) },
			"lu":       func() { copy(f.Data, g.Data); LU(p, f, pivots) },
			"qr":       func() { q := NewQR(p, g); q.Q(p, f) },
		} {
			b.Run(fmt.Sprintf("%s/%d", name, order), func(b *testing.B) {
				for b.Loop() {
					run()
				}
			})
		}
	}
}
