package gonum

import (
	"gonum.org/v1/gonum/blas"

	"github.com/rayo-go/rayo/simd"
)

// contiguous reports whether x is n elements without gaps, which simd takes.
// Anything else goes to gonum, which computes or panics with its own message.
func contiguous(n int, x []float32, inc int) bool { return n > 0 && inc == 1 && len(x) >= n }

// Sdot returns the sum of x·y.
func (b *BLAS) Sdot(n int, x []float32, incX int, y []float32, incY int) float32 {
	if !contiguous(n, x, incX) || !contiguous(n, y, incY) {
		return b.Implementation.Sdot(n, x, incX, y, incY)
	}
	return simd.Reduce(b.pool, simd.ReduceDot, x[:n], y[:n])
}

// Sasum returns the sum of |x|.
func (b *BLAS) Sasum(n int, x []float32, incX int) float32 {
	if !contiguous(n, x, incX) {
		return b.Implementation.Sasum(n, x, incX)
	}
	return simd.Reduce(b.pool, simd.ReduceSumAbs, x[:n], nil)
}

// The squares of norms between tinyNorm and hugeNorm neither lose bits to
// underflow nor overflow.
const (
	tinyNorm = 1e-15
	hugeNorm = 1e18
)

// Snrm2 returns the square root of the sum of x², without overflow where the
// result is a float32.
func (b *BLAS) Snrm2(n int, x []float32, incX int) float32 {
	if contiguous(n, x, incX) {
		if norm := simd.Reduce(b.pool, simd.ReduceNorm, x[:n], nil); norm > tinyNorm && norm < hugeNorm {
			return norm
		}
	}
	return b.Implementation.Snrm2(n, x, incX)
}

// Saxpy adds alpha·x to y.
func (b *BLAS) Saxpy(n int, alpha float32, x []float32, incX int, y []float32, incY int) {
	if alpha == 0 || !contiguous(n, x, incX) || !contiguous(n, y, incY) {
		b.Implementation.Saxpy(n, alpha, x, incX, y, incY)
		return
	}
	simd.Axpy(y[:n], x[:n], y[:n], alpha)
}

// Sscal multiplies x by alpha; alpha 0 sets it to zero whatever it held.
func (b *BLAS) Sscal(n int, alpha float32, x []float32, incX int) {
	if !contiguous(n, x, incX) {
		b.Implementation.Sscal(n, alpha, x, incX)
		return
	}
	scale(1, n, alpha, x, n)
}

// gather returns the n elements of x without gaps, in order: a negative increment
// counts from the end. It returns x itself if it has no gaps.
func gather(n int, x []float32, inc int) []float32 {
	if inc == 1 {
		return x[:n]
	}
	dst := make([]float32, n)
	at := max(0, (1-n)*inc)
	for i := range dst {
		dst[i] = x[at+i*inc]
	}
	return dst
}

// scatter writes y, which gather returned, back to x.
func scatter(y, x []float32, inc int) {
	if inc == 1 {
		return // y is x
	}
	at := max(0, (1-len(y))*inc)
	for i, v := range y {
		x[at+i*inc] = v
	}
}

// Sgemv computes y = alpha·op(A)·x + beta·y.
func (b *BLAS) Sgemv(tA blas.Transpose, m, n int, alpha float32, a []float32, lda int, x []float32, incX int, beta float32, y []float32, incY int) {
	b.Implementation.Sgemv(tA, m, n, 0, a, lda, x, incX, 1, y, incY) // checks, and computes nothing
	if m == 0 || n == 0 {
		return
	}
	if tA != blas.NoTrans {
		m, n = n, m
	}
	dst := gather(m, y, incY)
	// A row vector times op(A)ᵀ: simd.Gemm wants the columns of C without gaps.
	b.add(1, m, n, alpha, matrix{gather(n, x, incX), n, 1}, view(tA, a, lda).t(), beta, dst, m)
	scatter(dst, y, incY)
}

// Sger adds alpha·x·yᵀ to A.
func (b *BLAS) Sger(m, n int, alpha float32, x []float32, incX int, y []float32, incY int, a []float32, lda int) {
	b.Implementation.Sger(m, n, 0, x, incX, y, incY, a, lda) // checks, and computes nothing
	if m == 0 || n == 0 || alpha == 0 {
		return
	}
	x, y = gather(m, x, incX), gather(n, y, incY)
	for i, v := range x {
		row := a[i*lda : i*lda+n]
		simd.Axpy(row, y, row, alpha*v)
	}
}
