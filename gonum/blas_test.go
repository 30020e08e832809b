package gonum

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
	reference "gonum.org/v1/gonum/blas/gonum"
)

// random draws arguments, and prints its seed if the test fails.
func random(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

// array is n random numbers between guards, once as float32 and once as float64.
type array struct {
	single []float32
	double []float64
}

const guard = 12345

func newArray(r *rand.Rand, n int) array {
	a := array{make([]float32, n), make([]float64, n)}
	for i := range a.single {
		a.single[i] = float32(r.NormFloat64())
		a.double[i] = float64(a.single[i])
	}
	return a
}

// matrixOf returns a rows×cols matrix whose gaps between rows hold a guard.
func matrixOf(r *rand.Rand, rows, cols, ld int) array {
	a := newArray(r, rows*ld)
	for i := range rows {
		for j := cols; j < ld; j++ {
			a.single[i*ld+j], a.double[i*ld+j] = guard, guard
		}
	}
	return a
}

// packed returns n elements at an increment. Routines of level 2 are compared with
// gonum's on contiguous vectors, since those of gonum 0.17 read outside
// of vectors with a negative increment.
func (a array) packed(n, inc int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = a.double[max(0, (1-n)*inc)+i*inc]
	}
	return v
}

// unpack writes the result of packed back.
func (a array) unpack(v []float64, inc int) {
	for i, e := range v {
		a.double[max(0, (1-len(v))*inc)+i*inc] = e
	}
}

// dominate makes a triangular system well conditioned.
func (a array) dominate(n, ld int, d blas.Diag) {
	for i := range n {
		for j := range n {
			k := i*ld + j
			a.single[k] /= float32(n)
			if i == j && d == blas.NonUnit {
				a.single[k] += 2
			}
			a.double[k] = float64(a.single[k])
		}
	}
}

// check compares with the float64 result: terms products are in each sum.
func (a array) check(t *testing.T, what string, terms int) {
	t.Helper()
	tol := 2e-6 * math.Sqrt(float64(terms+1)) * 4
	for i, v := range a.single {
		if want := a.double[i]; !(math.Abs(float64(v)-want) <= tol*(1+math.Abs(want))) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, v, want)
		}
	}
}

var (
	transposes = []blas.Transpose{blas.NoTrans, blas.Trans, blas.ConjTrans}
	sides      = []blas.Side{blas.Left, blas.Right}
	triangles  = []blas.Uplo{blas.Upper, blas.Lower}
	diagonals  = []blas.Diag{blas.Unit, blas.NonUnit}
	factors    = []float32{0, 1, -1, 0.5, -2.25}
	orders     = []int{1, 2, 7, 33, 64, 65, 130, 200}
)

func pick[T any](r *rand.Rand, s []T) T { return s[r.IntN(len(s))] }

// extents returns rows and columns of a matrix a with op(a) of m×n.
func extents(t blas.Transpose, m, n int) (int, int) {
	if t == blas.NoTrans {
		return m, n
	}
	return n, m
}

func TestLevel3(t *testing.T) {
	b := NewBLAS()
	defer b.Close()
	r := random(t)
	var ref reference.Implementation
	for range 300 {
		m, n, k := pick(r, orders), pick(r, orders), pick(r, orders)
		alpha, beta := pick(r, factors), pick(r, factors)
		tA, tB, s, ul, d := pick(r, transposes), pick(r, transposes), pick(r, sides), pick(r, triangles), pick(r, diagonals)
		gap := r.IntN(4)
		name := fmt.Sprintf("m=%d n=%d k=%d alpha=%v beta=%v %c %c %c %c %c gap=%d", m, n, k, alpha, beta, tA, tB, s, ul, d, gap)
		mat := func(rows, cols int) (array, int) { return matrixOf(r, rows, cols, cols+gap), cols + gap }

		c, ldc := mat(m, n)
		ar, ac := extents(tA, m, k)
		br, bc := extents(tB, k, n)
		a, lda := mat(ar, ac)
		x, ldx := mat(br, bc)
		b.Sgemm(tA, tB, m, n, k, alpha, a.single, lda, x.single, ldx, beta, c.single, ldc)
		ref.Dgemm(tA, tB, m, n, k, float64(alpha), a.double, lda, x.double, ldx, float64(beta), c.double, ldc)
		c.check(t, "Sgemm "+name, k)

		order := m
		if s == blas.Right {
			order = n
		}
		a, lda = mat(order, order)
		x, ldx = mat(m, n)
		c, ldc = mat(m, n)
		b.Ssymm(s, ul, m, n, alpha, a.single, lda, x.single, ldx, beta, c.single, ldc)
		ref.Dsymm(s, ul, m, n, float64(alpha), a.double, lda, x.double, ldx, float64(beta), c.double, ldc)
		c.check(t, "Ssymm "+name, order)

		b.Strmm(s, ul, tA, d, m, n, alpha, a.single, lda, x.single, ldx)
		ref.Dtrmm(s, ul, tA, d, m, n, float64(alpha), a.double, lda, x.double, ldx)
		x.check(t, "Strmm "+name, order)

		a.dominate(order, lda, d)
		x, ldx = mat(m, n)
		b.Strsm(s, ul, tA, d, m, n, alpha, a.single, lda, x.single, ldx)
		ref.Dtrsm(s, ul, tA, d, m, n, float64(alpha), a.double, lda, x.double, ldx)
		x.check(t, "Strsm "+name, order)

		tA = pick(r, transposes[:2]) // gonum's Dsyr2k refuses ConjTrans
		ar, ac = extents(tA, n, k)
		a, lda = mat(ar, ac)
		x, _ = mat(ar, ac)
		c, ldc = mat(n, n)
		b.Ssyrk(ul, tA, n, k, alpha, a.single, lda, beta, c.single, ldc)
		ref.Dsyrk(ul, tA, n, k, float64(alpha), a.double, lda, float64(beta), c.double, ldc)
		c.check(t, "Ssyrk "+name, k)
		b.Ssyr2k(ul, tA, n, k, alpha, a.single, lda, x.single, lda, beta, c.single, ldc)
		ref.Dsyr2k(ul, tA, n, k, float64(alpha), a.double, lda, x.double, lda, float64(beta), c.double, ldc)
		c.check(t, "Ssyr2k "+name, 2*k)
	}
}

func TestLevel12(t *testing.T) {
	b := NewBLAS()
	defer b.Close()
	r := random(t)
	var ref reference.Implementation
	one := func(name string, n int, got float32, want float64) {
		t.Helper()
		(array{[]float32{got}, []float64{want}}).check(t, name, n)
	}
	for range 300 {
		m, n, incX, incY := pick(r, orders), pick(r, orders), pick(r, []int{1, 1, 2, -3}), pick(r, []int{1, 1, 3, -1})
		alpha, beta, tA := pick(r, factors), pick(r, factors), pick(r, transposes)
		name := fmt.Sprintf("m=%d n=%d incX=%d incY=%d alpha=%v beta=%v %c", m, n, incX, incY, alpha, beta, tA)
		vector := func(n, inc int) array { return newArray(r, (n-1)*max(inc, -inc)+1) }
		x, y := vector(n, incX), vector(n, incY)
		one("Sdot "+name, n, b.Sdot(n, x.single, incX, y.single, incY), ref.Ddot(n, x.double, incX, y.double, incY))
		one("Sasum "+name, n, b.Sasum(n, x.single, max(incX, 1)), ref.Dasum(n, x.double, max(incX, 1)))
		one("Snrm2 "+name, n, b.Snrm2(n, x.single, max(incX, 1)), ref.Dnrm2(n, x.double, max(incX, 1)))
		b.Saxpy(n, alpha, x.single, incX, y.single, incY)
		ref.Daxpy(n, float64(alpha), x.double, incX, y.double, incY)
		y.check(t, "Saxpy "+name, 1)
		b.Sscal(n, alpha, x.single, max(incX, 1))
		ref.Dscal(n, float64(alpha), x.double, max(incX, 1))
		x.check(t, "Sscal "+name, 1)

		lda := n + r.IntN(4)
		a := matrixOf(r, m, n, lda)
		rows, cols := extents(tA, m, n)
		x, y = vector(cols, incX), vector(rows, incY)
		b.Sgemv(tA, m, n, alpha, a.single, lda, x.single, incX, beta, y.single, incY)
		dst := y.packed(rows, incY)
		ref.Dgemv(tA, m, n, float64(alpha), a.double, lda, x.packed(cols, incX), 1, float64(beta), dst, 1)
		y.unpack(dst, incY)
		y.check(t, "Sgemv "+name, cols)
		x, y = vector(m, incX), vector(n, incY)
		b.Sger(m, n, alpha, x.single, incX, y.single, incY, a.single, lda)
		ref.Dger(m, n, float64(alpha), x.packed(m, incX), 1, y.packed(n, incY), 1, a.double, lda)
		a.check(t, "Sger "+name, 1)
	}
}

// Squares of 1e25 overflow, and those of 1e-30 vanish.
func TestNormScales(t *testing.T) {
	b := NewBLAS()
	defer b.Close()
	for _, v := range []float32{1e25, 1e-30, 1e-43} {
		x := []float32{v, v, v, v}
		if got, want := b.Snrm2(4, x, 1), 2*v; math.Abs(float64(got/want)-1) > 1e-6 {
			t.Errorf("norm of %v: %v, want %v", x, got, want)
		}
	}
	if got := b.Snrm2(2, []float32{0, 0}, 1); got != 0 {
		t.Errorf("norm of zeros: %v", got)
	}
}

// Beta 0 overwrites C whatever it held.
func TestBetaZero(t *testing.T) {
	b := NewBLAS()
	defer b.Close()
	nan := float32(math.NaN())
	c := []float32{nan, nan, nan, nan}
	b.Sgemm(blas.NoTrans, blas.NoTrans, 2, 2, 1, 2, []float32{1, 2}, 1, []float32{3, 4}, 2, 0, c, 2)
	for i, want := range []float32{6, 8, 12, 16} {
		if c[i] != want {
			t.Errorf("element %d is %v, want %v", i, c[i], want)
		}
	}
}

// Invalid arguments panic with gonum's messages.
func TestInvalid(t *testing.T) {
	b := NewBLAS()
	defer b.Close()
	var ref reference.Implementation
	x := make([]float32, 10)
	for name, call := range map[string]func(i blas.Float32){
		"short c":    func(i blas.Float32) { i.Sgemm('N', 'N', 4, 4, 1, 1, x, 1, x, 4, 0, x, 4) },
		"transpose":  func(i blas.Float32) { i.Sgemm('X', 'N', 1, 1, 1, 1, x, 1, x, 1, 0, x, 1) },
		"negative m": func(i blas.Float32) { i.Sgemm('N', 'N', -1, 1, 1, 1, x, 1, x, 1, 0, x, 1) },
		"side":       func(i blas.Float32) { i.Strsm('X', 'U', 'N', 'N', 100, 1, 1, x, 100, x, 1) },
		"short a":    func(i blas.Float32) { i.Strsm('L', 'U', 'N', 'N', 100, 1, 1, x, 100, x, 1) },
		"short x":    func(i blas.Float32) { i.Sdot(11, x, 1, x, 1) },
		"zero inc":   func(i blas.Float32) { i.Sgemv('N', 2, 2, 1, x, 2, x, 0, 0, x, 1) },
	} {
		message := func(i blas.Float32) (m any) {
			defer func() { m = recover() }()
			call(i)
			return nil
		}
		if got, want := message(b), message(ref); got == nil || got != want {
			t.Errorf("%s: panic %v, want %v", name, got, want)
		}
	}
}
