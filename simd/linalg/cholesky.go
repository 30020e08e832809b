package linalg

import (
	"math"

	"github.com/rayo-go/rayo/simd"
)

// Cholesky factors the symmetric positive definite matrix a as L·Lᵀ. It reads the
// lower triangle of a, and overwrites a with L, including zeros above the diagonal.
// It reports whether a is positive definite; if not, the content of a is undefined.
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

// cholesky is [Cholesky], except that the elements above the diagonal are undefined.
func cholesky(p *simd.Pool, a Matrix) bool {
	order := a.Rows
	if isFlat(order, order) {
		return choleskyFlat(a)
	}
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

// choleskyRows factors a small matrix row by row: it subtracts multiples of the earlier rows, which
// it also keeps transposed, so that all accesses are contiguous. It stops at a pivot that is not
// positive, or NaN.
func choleskyRows(a Matrix) bool {
	order := a.Rows
	m := take(order * order)
	defer m.give()
	lt := Matrix{m.data, order, order, order}
	var inverse [base]float32
	for i := range order {
		x := a.row(i)[:i+1]
		for k, inv := range inverse[:i] {
			f := x[k] * inv
			x[k] = f
			y := lt.Data[k*order : (k+1)*order]
			y[i] = f
			less(x[k+1:i], y[k+1:i], f)
		}
		s := x[i] // the pivot: a diagonal element less the squares of the elements before it
		for _, v := range x[:i] {
			s -= v * v
		}
		if !(s > 0) || math.IsInf(float64(s), 1) {
			return false
		}
		x[i] = float32(math.Sqrt(float64(s)))
		inverse[i] = 1 / x[i]
	}
	return true
}

// short is the length up to which a loop is faster than a kernel.
const short = 8

// less computes x -= f·y.
func less(x, y []float32, f float32) {
	if len(x) > short {
		simd.Axpy(x, y[:len(x)], x, -f)
		return
	}
	for i, v := range y[:len(x)] {
		x[i] -= f * v
	}
}

// dot returns the sum of the products.
func dot(x, y []float32) float32 {
	if len(x) > 2*short {
		return simd.Dot(x, y)
	}
	y = y[:len(x)]
	a, b := float32(0), float32(0)
	for ; len(x) >= 2 && len(y) >= 2; x, y = x[2:], y[2:] {
		a += x[0] * y[0]
		b += x[1] * y[1]
	}
	if len(x) > 0 && len(y) > 0 {
		a += x[0] * y[0]
	}
	return a + b
}

// squareAtOnce is the order of squares that subSquare computes whole, although one triangle
// is enough.
const squareAtOnce = 128

// subSquare computes C -= a·aᵀ in the lower triangle of c. The elements above are undefined.
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
