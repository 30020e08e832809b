package gonum

import "gonum.org/v1/gonum/blas"

// block is the order of triangles that are not cut further.
const block = 64

// Sgemm computes C = alpha·op(A)·op(B) + beta·C.
func (b *BLAS) Sgemm(tA, tB blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, x []float32, ldx int, beta float32, c []float32, ldc int) {
	b.Implementation.Sgemm(tA, tB, m, n, k, 0, a, lda, x, ldx, 1, c, ldc) // checks, and computes nothing
	b.add(m, n, k, alpha, view(tA, a, lda), view(tB, x, ldx), beta, c, ldc)
}

// Ssymm computes C = alpha·A·B + beta·C, or C = alpha·B·A + beta·C, with a
// symmetric A.
func (b *BLAS) Ssymm(s blas.Side, ul blas.Uplo, m, n int, alpha float32, a []float32, lda int, x []float32, ldx int, beta float32, c []float32, ldc int) {
	b.Implementation.Ssymm(s, ul, m, n, 0, a, lda, x, ldx, 1, c, ldc) // checks, and computes nothing
	if m == 0 || n == 0 || alpha == 0 {
		scale(m, n, beta, c, ldc)
		return
	}
	order := m
	if s == blas.Right {
		order = n
	}
	full := make([]float32, order*order)
	for i := range order {
		for j := range i + 1 {
			v := a[i*lda+j]
			if ul == blas.Upper {
				v = a[j*lda+i]
			}
			full[i*order+j], full[j*order+i] = v, v
		}
	}
	symmetric, other := matrix{full, order, 1}, matrix{x, ldx, 1}
	if s == blas.Left {
		b.add(m, n, m, alpha, symmetric, other, beta, c, ldc)
	} else {
		b.add(m, n, n, alpha, other, symmetric, beta, c, ldc)
	}
}

// Ssyrk computes one triangle of C = alpha·op(A)·op(A)ᵀ + beta·C.
func (b *BLAS) Ssyrk(ul blas.Uplo, t blas.Transpose, n, k int, alpha float32, a []float32, lda int, beta float32, c []float32, ldc int) {
	b.Implementation.Ssyrk(ul, t, n, k, 0, a, lda, 1, c, ldc) // checks, and computes nothing
	x := view(t, a, lda)
	b.rankK(ul, n, k, alpha, [][2]matrix{{x, x.t()}}, beta, c, ldc)
}

// Ssyr2k computes one triangle of C = alpha·(op(A)·op(B)ᵀ + op(B)·op(A)ᵀ) + beta·C.
func (b *BLAS) Ssyr2k(ul blas.Uplo, t blas.Transpose, n, k int, alpha float32, a []float32, lda int, x []float32, ldx int, beta float32, c []float32, ldc int) {
	b.Implementation.Ssyr2k(ul, t, n, k, 0, a, lda, x, ldx, 1, c, ldc) // checks, and computes nothing
	p, q := view(t, a, lda), view(t, x, ldx)
	b.rankK(ul, n, k, alpha, [][2]matrix{{p, q.t()}, {q, p.t()}}, beta, c, ldc)
}

// rankK computes one triangle of C = alpha·Σ x·y + beta·C, where x is n×k and y is
// k×n. It halves the triangle into two and a rectangle.
func (b *BLAS) rankK(ul blas.Uplo, n, k int, alpha float32, terms [][2]matrix, beta float32, c []float32, ldc int) {
	if n == 0 {
		return
	}
	if alpha == 0 || k == 0 {
		scaleTriangle(ul, n, beta, c, ldc)
		return
	}
	if n <= block {
		b.rankKBlock(ul, n, k, alpha, terms, beta, c, ldc)
		return
	}
	h := n / 2
	second := make([][2]matrix, len(terms))
	for i, t := range terms {
		second[i] = [2]matrix{t[0].at(h, 0), t[1].at(0, h)}
	}
	b.rankK(ul, h, k, alpha, terms, beta, c, ldc)
	b.rankK(ul, n-h, k, alpha, second, beta, c[h*ldc+h:], ldc)
	rows, cols, i, j := n-h, h, h, 0
	if ul == blas.Upper {
		rows, cols, i, j = h, n-h, 0, h
	}
	for _, t := range terms {
		b.add(rows, cols, k, alpha, t[0].at(i, 0), t[1].at(0, j), beta, c[i*ldc+j:], ldc)
		beta = 1
	}
}

// rankKBlock computes a small triangle as a square beside C, since C keeps its
// other triangle.
func (b *BLAS) rankKBlock(ul blas.Uplo, n, k int, alpha float32, terms [][2]matrix, beta float32, c []float32, ldc int) {
	square := make([]float32, n*n)
	for i, t := range terms {
		b.add(n, n, k, 1, t[0], t[1], float32(min(i, 1)), square, n)
	}
	scaleTriangle(ul, n, beta, c, ldc)
	for i := range n {
		from, to := triangleRow(ul, n, i)
		for j := from; j < to; j++ {
			c[i*ldc+j] += alpha * square[i*n+j]
		}
	}
}

// triangleRow returns the columns of row i that belong to the triangle.
func triangleRow(ul blas.Uplo, n, i int) (from, to int) {
	if ul == blas.Upper {
		return i, n
	}
	return 0, i + 1
}

func scaleTriangle(ul blas.Uplo, n int, beta float32, c []float32, ldc int) {
	for i := range n {
		from, to := triangleRow(ul, n, i)
		scale(1, to-from, beta, c[i*ldc+from:], ldc)
	}
}
