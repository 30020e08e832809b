package linalg

import "github.com/rayo-go/rayo/simd"

// A Triangle says which triangle of a matrix an operation uses, and how.
type Triangle struct {
	Upper bool // the upper triangle; otherwise the lower one
	Trans bool // the transpose of the triangle
	Unit  bool // its diagonal consists of ones; that of the matrix is not read
}

// base is the largest order of triangles that are solved row by row.
const base = 32

// columnsAtOnce is the width of a part of the right-hand sides: a block of rows
// of that width stays in the first cache.
const columnsAtOnce = 256

// SolveLeft solves op(A)·X = B for a triangle of the square matrix a; X overwrites
// b. A zero on the diagonal gives infinities or NaN.
func (tr Triangle) SolveLeft(p *simd.Pool, a, b Matrix) {
	a.check("A")
	b.check("B")
	if b.Rows == 0 || b.Cols == 0 {
		return
	}
	tr.solveLeft(p, a, b)
}

// SolveRight solves X·op(A) = B; X overwrites b.
func (tr Triangle) SolveRight(p *simd.Pool, a, b Matrix) {
	a.check("A")
	b.check("B")
	if b.Rows == 0 || b.Cols == 0 {
		return
	}
	tr.solveRight(p, a, b)
}

// forward reports whether op(A) is lower triangular.
func (tr Triangle) forward() bool { return tr.Upper == tr.Trans }

// off returns the rectangle of op(A) with the given rows and columns.
func (tr Triangle) off(a Matrix, row, rows, col, cols int) operand {
	if tr.Trans {
		return t(a.part(col, row, cols, rows))
	}
	return n(a.part(row, col, rows, cols))
}

// half returns about half of an order, as a multiple of base.
func half(order int) int { return (order/2 + base - 1) / base * base }

func (tr Triangle) solveLeft(p *simd.Pool, a, b Matrix) {
	order := b.Rows
	if order <= base {
		tr.rows(p, a, b)
		return
	}
	h := half(order)
	a1, b1 := a.part(0, 0, h, h), b.part(0, 0, h, b.Cols)
	a2, b2 := a.part(h, h, order-h, order-h), b.part(h, 0, order-h, b.Cols)
	if tr.forward() {
		tr.solveLeft(p, a1, b1)
		sub(p, b2, tr.off(a, h, order-h, 0, h), n(b1))
		tr.solveLeft(p, a2, b2)
	} else {
		tr.solveLeft(p, a2, b2)
		sub(p, b1, tr.off(a, 0, h, h, order-h), n(b2))
		tr.solveLeft(p, a1, b1)
	}
}

func (tr Triangle) solveRight(p *simd.Pool, a, b Matrix) {
	order := b.Cols
	if order <= base {
		// X·op(A) = B is solved as op(A)ᵀ·Xᵀ = Bᵀ, which has long rows.
		s := take(b.Rows * order)
		bt := Matrix{s.data, order, b.Rows, b.Rows}
		transpose(bt, b)
		tr.Trans = !tr.Trans
		tr.rows(p, a, bt)
		transpose(b, bt)
		s.give()
		return
	}
	h := half(order)
	a1, b1 := a.part(0, 0, h, h), b.part(0, 0, b.Rows, h)
	a2, b2 := a.part(h, h, order-h, order-h), b.part(0, h, b.Rows, order-h)
	if tr.forward() {
		tr.solveRight(p, a2, b2)
		sub(p, b1, n(b2), tr.off(a, h, order-h, 0, h))
		tr.solveRight(p, a1, b1)
	} else {
		tr.solveRight(p, a1, b1)
		sub(p, b2, n(b1), tr.off(a, 0, h, h, order-h))
		tr.solveRight(p, a2, b2)
	}
}

// rows solves op(A)·X = B for few rows: it subtracts multiples of the solved rows from the next one.
func (tr Triangle) rows(p *simd.Pool, a, b Matrix) {
	parts := (b.Cols + columnsAtOnce - 1) / columnsAtOnce
	solve := part(func(i int) {
		from := i * columnsAtOnce
		tr.columns(a, b.part(0, from, b.Rows, min(columnsAtOnce, b.Cols-from)))
	})
	if parts == 1 {
		solve(0)
		return
	}
	p.Do(parts, solve)
}

// columns solves op(A)·X = B for some columns of B.
func (tr Triangle) columns(a, b Matrix) {
	if b.Cols == 1 && b.Stride == 1 && !tr.Trans {
		tr.vector(a, b.Data)
		return
	}
	for k := range b.Rows {
		i, from, to := k, 0, k
		if !tr.forward() {
			i = b.Rows - 1 - k
			from, to = i+1, b.Rows
		}
		x := b.row(i)
		for j := from; j < to; j++ {
			f := a.Data[i*a.Stride+j]
			if tr.Trans {
				f = a.Data[j*a.Stride+i]
			}
			y := b.row(j)
			less(x, y, f)
		}
		if d := a.Data[i*a.Stride+i]; !tr.Unit {
			for c := range x {
				x[c] /= d
			}
		}
	}
}

// vector solves A·x = b for an untransposed triangle and one right-hand side, by dot products of rows.
func (tr Triangle) vector(a Matrix, b []float32) {
	for k := range b {
		i, from, to := k, 0, k
		if tr.Upper {
			i = len(b) - 1 - k
			from, to = i+1, len(b)
		}
		x := a.row(i)
		b[i] -= dot(x[from:to], b[from:to])
		if !tr.Unit {
			b[i] /= x[i]
		}
	}
}

// transpose copies src to dst, which has its extents exchanged.
func transpose(dst, src Matrix) {
	if src.Rows > 0 && src.Cols > 0 {
		simd.TransposeTile(&dst.Data[0], &src.Data[0], dst.Stride, src.Stride, src.Rows, src.Cols)
	}
}
