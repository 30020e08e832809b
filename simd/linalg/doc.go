// Package linalg factors and solves dense float32 matrices on the kernels of
// package simd: Cholesky, LU with partial pivoting, QR, triangular systems.
//
// Matrices are row-major, with a stride between rows. All algorithms work on blocks, so that nearly
// all arithmetic is in [simd.Gemm]. The residuals have the bounds of LAPACK's algorithms: ‖A−LLᵀ‖,
// ‖PA−LU‖, ‖A−QR‖ and ‖I−QᵀQ‖ stay below 30·n·ε·‖A‖, with ε = 2⁻²³.
//
// As in package simd, functions panic if a size does not fit.
package linalg

import (
	"sync"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/simd"
)

// A Matrix is Rows×Cols elements; element (i, j) is Data[i*Stride+j].
type Matrix struct {
	Data               []float32
	Rows, Cols, Stride int
}

// New returns a matrix of zeros.
func New(rows, cols int) Matrix {
	return Matrix{make([]float32, rows*cols), rows, cols, cols}
}

// check panics if Data is too short for the extents.
func (m Matrix) check(name string) {
	if m.Rows < 0 || m.Cols < 0 || m.Stride < m.Cols || m.Rows > 0 && m.Cols > 0 && (len(m.Data)-m.Cols)/max(m.Stride, 1) < m.Rows-1 || m.Rows > 0 && len(m.Data) < m.Cols {
		panic(fmt.Sprintf("linalg: %s: %d elements are too few for %d×%d with stride %d, or the extents are invalid", name, len(m.Data), m.Rows, m.Cols, m.Stride))
	}
}

// part returns the rows×cols matrix whose first element is (i, j).
func (m Matrix) part(i, j, rows, cols int) Matrix {
	p := Matrix{nil, rows, cols, m.Stride}
	if rows > 0 && cols > 0 {
		p.Data = m.Data[i*m.Stride+j : (i+rows-1)*m.Stride+j+cols]
	}
	return p
}

// row returns row i.
func (m Matrix) row(i int) []float32 { return m.Data[i*m.Stride : i*m.Stride+m.Cols] }

// operand is a matrix or its transpose.
type operand struct {
	m     Matrix
	trans bool
}

// extents returns the rows and columns of op applied to the operand.
func (o operand) extents() (rows, cols int) {
	if o.trans {
		return o.m.Cols, o.m.Rows
	}
	return o.m.Rows, o.m.Cols
}

// strides returns the distances between rows and between columns.
func (o operand) strides() (row, col int) {
	if o.trans {
		return 1, o.m.Stride
	}
	return o.m.Stride, 1
}

// n returns a matrix as an operand, and t returns its transpose.
func n(m Matrix) operand { return operand{m, false} }
func t(m Matrix) operand { return operand{m, true} }

// mul computes C = a·b.
func mul(p *simd.Pool, c Matrix, a, b operand) { gemm(p, c, a, b, false) }

// sub computes C -= a·b. It negates a copy of the operand with fewer elements, which is small in
// all calls.
func sub(p *simd.Pool, c Matrix, a, b operand) {
	small := &a
	if b.m.Rows*b.m.Cols < a.m.Rows*a.m.Cols {
		small = &b
	}
	m := small.m
	s := take(m.Rows * m.Cols)
	small.m = Matrix{s.data, m.Rows, m.Cols, m.Cols}
	for i := range m.Rows {
		negate(small.m.row(i), m.row(i))
	}
	gemm(p, c, a, b, true)
	s.give()
}

// negate stores -x in dst.
func negate(dst, x []float32) {
	if len(x) > 2*short {
		simd.Neg(dst, x)
		return
	}
	for i, v := range x {
		dst[i] = -v
	}
}

func gemm(p *simd.Pool, c Matrix, a, b operand, accumulate bool) {
	_, k := a.extents()
	g := simd.Gemm{M: c.Rows, N: c.Cols, K: k, A: a.m.Data, B: b.m.Data, C: c.Data, CRow: c.Stride, Accumulate: accumulate}
	g.ARow, g.ACol = a.strides()
	g.BRow, g.BCol = b.strides()
	g.Run(p)
}

// part is a workers.Task that calls a function for each part.
type part func(i int)

// Part implements workers.Task.
func (f part) Part(i int) { f(i) }

// scratch is memory that calls reuse.
type scratch struct{ data []float32 }

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// take returns n elements with unspecified content.
func take(n int) *scratch {
	s := scratches.Get().(*scratch)
	if cap(s.data) < n {
		s.data = make([]float32, n)
	}
	s.data = s.data[:n]
	return s
}

func (s *scratch) give() { scratches.Put(s) }
