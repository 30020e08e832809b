package linalg

import (
	"math"

	"github.com/rayo-go/rayo/simd"
)

// Cholesky factors the symmetric positive definite matrix a, of which it reads the
// lower triangle, as L·Lᵀ. L overwrites a, zeros above its diagonal included. It
// reports whether a is positive definite; if not, a holds nothing useful.
func Cholesky(p *simd.Pool, a Matrix) bool {
	a.check("A")
	if !cholesky(p, a) {
		return false
	}
	for i := range a.Rows {
		clear(a.row(i)[i+1:])
	}
	return true
}

// cholesky leaves anything above the diagonal.
func cholesky(p *simd.Pool, a Matrix) bool {
	order := a.Rows
	if order <= base {
		return choleskyRows(a)
	}
	h := half(order)
	a11, a21, a22 := a.part(0, 0, h, h), a.part(h, 0, order-h, h), a.part(h, h, order-h, order-h)
	if !cholesky(p, a11) {
		return false
	}
	Triangle{Trans: true}.solveRight(p, a11, a21)
	subSquare(p, a22, a21)
	return cholesky(p, a22)
}

// choleskyRows factors a small matrix row by row. A pivot that is not positive, NaN
// too, ends it.
func choleskyRows(a Matrix) bool {
	for i := range a.Rows {
		x := a.row(i)
		for j := range i {
			y := a.row(j)
			s := x[j]
			for k, v := range y[:j] {
				s -= x[k] * v
			}
			x[j] = s / y[j]
		}
		s := x[i]
		for _, v := range x[:i] {
			s -= v * v
		}
		if !(s > 0) || math.IsInf(float64(s), 1) {
			return false
		}
		x[i] = float32(math.Sqrt(float64(s)))
	}
	return true
}

// squareAtOnce is the order of squares that are computed whole, although one triangle
// would do.
const squareAtOnce = 128

// subSquare computes C -= a·aᵀ in the lower triangle of c, and anything above.
func subSquare(p *simd.Pool, c, a Matrix) {
	if c.Rows <= squareAtOnce {
		sub(p, c, n(a), t(a))
		return
	}
	h := half(c.Rows)
	rest := c.Rows - h
	a1, a2 := a.part(0, 0, h, a.Cols), a.part(h, 0, rest, a.Cols)
	subSquare(p, c.part(0, 0, h, h), a1)
	sub(p, c.part(h, 0, rest, h), n(a2), t(a1))
	subSquare(p, c.part(h, h, rest, rest), a2)
}
