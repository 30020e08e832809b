package gonum

import "gonum.org/v1/gonum/blas"

// Strmm computes B = alpha·op(A)·B, or B = alpha·B·op(A), with a triangular A.
func (b *BLAS) Strmm(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha float32, a []float32, lda int, x []float32, ldx int) {
	t := triangular{BLAS: b, side: s, uplo: ul, trans: tA, diag: d, a: a, lda: lda, b: x, ldb: ldx, factor: 1, small: b.Implementation.Strmm}
	t.run(m, n, alpha)
}

// Strsm solves op(A)·X = alpha·B, or X·op(A) = alpha·B, with a triangular A; X
// overwrites B. A singular A gives infinities and NaN.
func (b *BLAS) Strsm(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha float32, a []float32, lda int, x []float32, ldx int) {
	t := triangular{BLAS: b, side: s, uplo: ul, trans: tA, diag: d, a: a, lda: lda, b: x, ldb: ldx, factor: -1, small: b.Implementation.Strsm}
	t.run(m, n, alpha)
}

// triangular is a product with a triangular matrix, or the solution of a
// triangular system. Both halve the triangle: a half of B, the source, enters the
// other, the target, through a rectangle of A.
type triangular struct {
	*BLAS
	side   blas.Side
	uplo   blas.Uplo
	trans  blas.Transpose
	diag   blas.Diag
	a, b   []float32
	lda    int
	ldb    int
	other  int     // the extent of B that A does not have
	factor float32 // of the source in the target: 1 in a product, -1 in a solution
	small  func(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha float32, a []float32, lda int, b []float32, ldb int)
}

// run checks the arguments, scales B by alpha, and computes.
func (t *triangular) run(m, n int, alpha float32) {
	order := m
	t.other = n
	if t.side == blas.Right {
		order, t.other = n, m
	}
	if order <= block || alpha == 0 || !t.valid(order, m, n) {
		t.small(t.side, t.uplo, t.trans, t.diag, m, n, alpha, t.a, t.lda, t.b, t.ldb)
		return
	}
	scale(m, n, alpha, t.b, t.ldb)
	t.halve(0, order)
}

// valid reports whether the arguments are those of BLAS; gonum's routine panics on
// others, with its own message.
func (t *triangular) valid(order, m, n int) bool {
	return (t.side == blas.Left || t.side == blas.Right) && (t.uplo == blas.Upper || t.uplo == blas.Lower) &&
		(t.trans == blas.NoTrans || t.trans == blas.Trans || t.trans == blas.ConjTrans) &&
		(t.diag == blas.Unit || t.diag == blas.NonUnit) && m > 0 && n > 0 && t.lda >= order && t.ldb >= n &&
		len(t.a) >= (order-1)*t.lda+order && len(t.b) >= (m-1)*t.ldb+n
}

// halve computes with the rows and columns lo to hi of A.
func (t *triangular) halve(lo, hi int) {
	if hi-lo <= block {
		m, n, at := hi-lo, t.other, lo*t.ldb
		if t.side == blas.Right {
			m, n, at = t.other, hi-lo, lo
		}
		t.small(t.side, t.uplo, t.trans, t.diag, m, n, 1, t.a[lo*t.lda+lo:], t.lda, t.b[at:], t.ldb)
		return
	}
	mid := lo + (hi-lo)/2
	// op(A) is lower triangular if A is, or if the transpose of an upper one is meant.
	lower := (t.uplo == blas.Lower) == (t.trans == blas.NoTrans)
	source, target := [2]int{lo, mid}, [2]int{mid, hi}
	if lower != (t.side == blas.Left) {
		source, target = target, source
	}
	if t.factor < 0 { // the solution of the source enters the target
		t.halve(source[0], source[1])
		t.enter(source, target)
		t.halve(target[0], target[1])
	} else { // the source enters as it was
		t.halve(target[0], target[1])
		t.enter(source, target)
		t.halve(source[0], source[1])
	}
}

// enter adds factor times op(A) of the source, or the source times op(A), to the target.
func (t *triangular) enter(source, target [2]int) {
	a := view(t.trans, t.a, t.lda)
	s, n := source[1]-source[0], target[1]-target[0]
	if t.side == blas.Left {
		t.add(n, t.other, s, t.factor, a.at(target[0], source[0]), matrix{t.b[source[0]*t.ldb:], t.ldb, 1},
			1, t.b[target[0]*t.ldb:], t.ldb)
		return
	}
	t.add(t.other, n, s, t.factor, matrix{t.b[source[0]:], t.ldb, 1}, a.at(source[0], target[0]),
		1, t.b[target[0]:], t.ldb)
}
