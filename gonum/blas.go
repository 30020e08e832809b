package gonum

import (
	"gonum.org/v1/gonum/blas"
	reference "gonum.org/v1/gonum/blas/gonum"

	"github.com/rayo-go/rayo/simd"
)

// BLAS implements [blas.Float32] on rayo's SIMD kernels. Several goroutines may
// use one at the same time.
//
// Sums are float32, in an order of rayo's own: results differ from gonum's by
// rounding. The routines of level 3 multiply all elements, zeros too, so that an
// infinity or a NaN in one operand reaches the result where gonum skips
// the zeros of A.
type BLAS struct {
	reference.Implementation
	pool *simd.Pool
}

var _ blas.Float32 = (*BLAS)(nil)

// NewBLAS returns routines that use all threads of the process.
func NewBLAS() *BLAS { return &BLAS{pool: simd.NewPool(0)} }

// Close ends the threads. The routines still work afterwards, on the calling
// goroutine alone.
func (b *BLAS) Close() { b.pool.Close() }

// matrix is op(X) of BLAS: a row-major matrix, or its transpose, as strides.
type matrix struct {
	data     []float32
	row, col int // distance of rows, distance of columns
}

func view(t blas.Transpose, data []float32, ld int) matrix {
	if t == blas.NoTrans {
		return matrix{data, ld, 1}
	}
	return matrix{data, 1, ld}
}

// at returns the part of m whose first element is (i, j).
func (m matrix) at(i, j int) matrix {
	return matrix{m.data[i*m.row+j*m.col:], m.row, m.col}
}

// t returns the transpose.
func (m matrix) t() matrix { return matrix{m.data, m.col, m.row} }

// scale multiplies the m×n matrix c by beta. As in BLAS, beta 0 sets it to zero
// whatever it held.
func scale(m, n int, beta float32, c []float32, ldc int) {
	if beta == 1 {
		return
	}
	for i := range m {
		row := c[i*ldc : i*ldc+n]
		if beta == 0 {
			clear(row)
		} else {
			simd.Scale(row, row, beta)
		}
	}
}

// add computes C = alpha·x·y + beta·C for arguments that have been checked.
func (b *BLAS) add(m, n, k int, alpha float32, x, y matrix, beta float32, c []float32, ldc int) {
	if m == 0 || n == 0 {
		return
	}
	if alpha == 0 || k == 0 {
		scale(m, n, beta, c, ldc)
		return
	}
	g := simd.Gemm{M: m, N: n, K: k, A: x.data, ARow: x.row, ACol: x.col, B: y.data, BRow: y.row, BCol: y.col, C: c, CRow: ldc}
	if beta != 0 && alpha != 1 && alpha != -1 {
		// Scaling x costs m·k products, and n times as many follow.
		scaled := make([]float32, m*k)
		for i := range m {
			for j := range k {
				scaled[i*k+j] = alpha * x.data[i*x.row+j*x.col]
			}
		}
		g.A, g.ARow, g.ACol, alpha = scaled, k, 1, 1
	}
	if beta != 0 {
		// alpha is 1 or -1 here: alpha·(x·y + alpha·beta·C) is exact in alpha.
		scale(m, n, alpha*beta, c, ldc)
		g.Accumulate = true
	}
	if alpha != 1 {
		g.Epilogue = func(row []float32, _, _ int) { simd.Scale(row, row, alpha) }
	}
	g.Run(b.pool)
}
