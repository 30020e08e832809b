package gonum

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/blas"
	reference "gonum.org/v1/gonum/blas/gonum"
	"gonum.org/v1/gonum/blas/testblas"
)

// double is BLAS behind float64 routines: gonum's test suite has no other. Each method
// computes in float32, compares with gonum's result in float64, and returns the
// latter, so that the suite's cases, guards and expected panics apply.
type double struct {
	t *testing.T
	b *BLAS
	reference.Implementation
}

func single(x []float64) []float32 {
	if x == nil {
		return nil
	}
	s := make([]float32, len(x))
	for i, v := range x {
		s[i] = float32(v)
	}
	return s
}

func (d double) same(routine string, got []float32, want []float64) {
	d.t.Helper()
	for i, v := range got {
		g, w := float64(v), want[i]
		if g != w && !(math.IsNaN(g) && math.IsNaN(w)) && !(math.Abs(g-w) <= 1e-5*(1+math.Abs(w))) {
			d.t.Errorf("%s: element %d is %v, want %v", routine, i, g, w)
		}
	}
}

func (d double) Dgemm(tA, tB blas.Transpose, m, n, k int, alpha float64, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int) {
	got := single(c)
	d.b.Sgemm(tA, tB, m, n, k, float32(alpha), single(a), lda, single(b), ldb, float32(beta), got, ldc)
	d.Implementation.Dgemm(tA, tB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
	d.same("Sgemm", got, c)
}

func (d double) Dsymm(s blas.Side, ul blas.Uplo, m, n int, alpha float64, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int) {
	got := single(c)
	d.b.Ssymm(s, ul, m, n, float32(alpha), single(a), lda, single(b), ldb, float32(beta), got, ldc)
	d.Implementation.Dsymm(s, ul, m, n, alpha, a, lda, b, ldb, beta, c, ldc)
	d.same("Ssymm", got, c)
}

func (d double) Dsyrk(ul blas.Uplo, t blas.Transpose, n, k int, alpha float64, a []float64, lda int, beta float64, c []float64, ldc int) {
	got := single(c)
	d.b.Ssyrk(ul, t, n, k, float32(alpha), single(a), lda, float32(beta), got, ldc)
	d.Implementation.Dsyrk(ul, t, n, k, alpha, a, lda, beta, c, ldc)
	d.same("Ssyrk", got, c)
}

func (d double) Dsyr2k(ul blas.Uplo, t blas.Transpose, n, k int, alpha float64, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int) {
	got := single(c)
	d.b.Ssyr2k(ul, t, n, k, float32(alpha), single(a), lda, single(b), ldb, float32(beta), got, ldc)
	d.Implementation.Dsyr2k(ul, t, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
	d.same("Ssyr2k", got, c)
}

func (d double) Dtrmm(s blas.Side, ul blas.Uplo, tA blas.Transpose, diag blas.Diag, m, n int, alpha float64, a []float64, lda int, b []float64, ldb int) {
	got := single(b)
	d.b.Strmm(s, ul, tA, diag, m, n, float32(alpha), single(a), lda, got, ldb)
	d.Implementation.Dtrmm(s, ul, tA, diag, m, n, alpha, a, lda, b, ldb)
	d.same("Strmm", got, b)
}

func (d double) Dtrsm(s blas.Side, ul blas.Uplo, tA blas.Transpose, diag blas.Diag, m, n int, alpha float64, a []float64, lda int, b []float64, ldb int) {
	got := single(b)
	d.b.Strsm(s, ul, tA, diag, m, n, float32(alpha), single(a), lda, got, ldb)
	d.Implementation.Dtrsm(s, ul, tA, diag, m, n, alpha, a, lda, b, ldb)
	d.same("Strsm", got, b)
}

func (d double) Dgemv(tA blas.Transpose, m, n int, alpha float64, a []float64, lda int, x []float64, incX int, beta float64, y []float64, incY int) {
	got := single(y)
	d.b.Sgemv(tA, m, n, float32(alpha), single(a), lda, single(x), incX, float32(beta), got, incY)
	d.Implementation.Dgemv(tA, m, n, alpha, a, lda, x, incX, beta, y, incY)
	d.same("Sgemv", got, y)
}

func (d double) Dger(m, n int, alpha float64, x []float64, incX int, y []float64, incY int, a []float64, lda int) {
	got := single(a)
	d.b.Sger(m, n, float32(alpha), single(x), incX, single(y), incY, got, lda)
	d.Implementation.Dger(m, n, alpha, x, incX, y, incY, a, lda)
	d.same("Sger", got, a)
}

func (d double) Ddot(n int, x []float64, incX int, y []float64, incY int) float64 {
	got := d.b.Sdot(n, single(x), incX, single(y), incY)
	want := d.Implementation.Ddot(n, x, incX, y, incY)
	d.same("Sdot", []float32{got}, []float64{want})
	return want
}

func (d double) Dasum(n int, x []float64, incX int) float64 {
	got := d.b.Sasum(n, single(x), incX)
	want := d.Implementation.Dasum(n, x, incX)
	d.same("Sasum", []float32{got}, []float64{want})
	return want
}

func (d double) Dnrm2(n int, x []float64, incX int) float64 {
	got := d.b.Snrm2(n, single(x), incX)
	want := d.Implementation.Dnrm2(n, x, incX)
	d.same("Snrm2", []float32{got}, []float64{want})
	return want
}

func (d double) Daxpy(n int, alpha float64, x []float64, incX int, y []float64, incY int) {
	got := single(y)
	d.b.Saxpy(n, float32(alpha), single(x), incX, got, incY)
	d.Implementation.Daxpy(n, alpha, x, incX, y, incY)
	d.same("Saxpy", got, y)
}

func (d double) Dscal(n int, alpha float64, x []float64, incX int) {
	got := single(x)
	d.b.Sscal(n, float32(alpha), got, incX)
	d.Implementation.Dscal(n, alpha, x, incX)
	d.same("Sscal", got, x)
}

// TestSuite runs gonum's own suite over the routines that BLAS overrides.
func TestSuite(t *testing.T) {
	b := NewBLAS()
	defer b.Close()
	for name, run := range map[string]func(t *testing.T, d double){
		"gemm":  func(t *testing.T, d double) { testblas.TestDgemm(t, d) },
		"symm":  func(t *testing.T, d double) { testblas.DsymmTest(t, d) },
		"syrk":  func(t *testing.T, d double) { testblas.DsyrkTest(t, d) },
		"syr2k": func(t *testing.T, d double) { testblas.Dsyr2kTest(t, d) },
		"trmm":  func(t *testing.T, d double) { testblas.DtrmmTest(t, d) },
		"trsm":  func(t *testing.T, d double) { testblas.DtrsmTest(t, d) },
		"gemv":  func(t *testing.T, d double) { testblas.DgemvTest(t, d) },
		"ger":   func(t *testing.T, d double) { testblas.DgerTest(t, d) },
		"dot":   func(t *testing.T, d double) { testblas.DdotTest(t, d) },
		"asum":  func(t *testing.T, d double) { testblas.DasumTest(t, d) },
		"nrm2":  func(t *testing.T, d double) { testblas.Dnrm2Test(t, d) },
		"axpy":  func(t *testing.T, d double) { testblas.DaxpyTest(t, d) },
		"scal":  func(t *testing.T, d double) { testblas.DscalTest(t, d) },
	} {
		t.Run(name, func(t *testing.T) { run(t, double{t: t, b: b}) })
	}
}
