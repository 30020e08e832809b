package linalg

import (
	"math"

	"github.com/rayo-go/rayo/simd"
)

// SVD decomposes a, which has m rows and n columns, as U·diag(s)·Vᵀ: u is m×k, s has k
// elements in descending order, and vt is k×n, with k = min(m, n). It does not change a. It
// reports whether a is finite; if not, the results are undefined.
//
// V has the eigenvectors of AᵀA, so the columns of A·V are almost orthogonal, and the factor R of
// their QR factorisation is almost diagonal. Rounding errors of AᵀA disturb the vectors of small
// singular values. The last rows and columns of R, which belong to these values, are decomposed
// again by themselves, so that the values are no longer small compared with the norm.
func SVD(p *simd.Pool, a, u Matrix, s []float32, vt Matrix) bool {
	a.check("A")
	u.check("U")
	vt.check("Vᵀ")
	if a.Rows == 0 || a.Cols == 0 {
		return true
	}
	memory := take(a.Rows * a.Cols)
	defer memory.give()
	x := Matrix{memory.data, a.Rows, a.Cols, a.Cols}
	scale, ok := scaledCopy(x, a, false)
	if !ok {
		return false
	}
	if a.Rows >= a.Cols {
		tall(p, x, u, s, vt)
	} else {
		k := a.Rows
		m := take(a.Cols*k + a.Cols*k + k*k)
		at, v, ut := Matrix{m.data, a.Cols, k, k}, Matrix{m.data[a.Cols*k:], a.Cols, k, k}, Matrix{m.data[2*a.Cols*k:], k, k, k}
		transpose(at, x)
		tall(p, at, v, s, ut)
		transpose(vt, v)
		transpose(u, ut)
		m.give()
	}
	for i, v := range s {
		s[i] = float32(float64(v) * scale)
	}
	return true
}

// tall is SVD of a matrix with at least as many rows as columns.
func tall(p *simd.Pool, a, u Matrix, s []float32, vt Matrix) {
	m := take(a.Cols * a.Cols)
	defer m.give()
	v := Matrix{m.data, a.Cols, a.Cols, a.Cols}
	limit := 0x1p-23 * float64(a.Cols) * frobenius(a)
	decompose(p, a, u, s, v, limit, 0)
	for i := range s {
		if s[i] < 0 {
			s[i] = -s[i]
			simd.Neg(v.row(i), v.row(i))
		}
	}
	order(s, u, v, vt)
}

// maxDepth limits the nested decompositions. Each one leaves values that are smaller than those before it by a factor of
// 30 or more, until all are below the rounding errors of the matrix.
const maxDepth = 16

// decompose computes a = u·diag(s)·v up to errors of the norm limit. The signs and the order of s are arbitrary.
func decompose(p *simd.Pool, a, u Matrix, s []float32, v Matrix, limit float64, depth int) {
	k := a.Cols
	m := take(2*k*k + a.Rows*k)
	defer m.give()
	gram, r := Matrix{m.data[:k*k], k, k, k}, Matrix{m.data[k*k : 2*k*k], k, k, k}
	b := Matrix{m.data[2*k*k:], a.Rows, k, k}
	mul(p, gram, t(a), n(a))
	eighRows(p, gram, v)
	for i := range k / 2 { // descending order
		swap(v, i, k-1-i)
	}
	mul(p, b, n(a), t(v))
	f := NewQR(p, b)
	f.R(r)
	f.Q(p, u)
	for i := range s {
		s[i] = r.row(i)[i]
	}
	if done := diagonalRows(r, limit); done < k && depth < maxDepth {
		decomposeRest(p, r.part(done, done, k-done, k-done), u.part(0, done, u.Rows, k-done), s[done:], v.part(done, 0, k-done, k), limit, depth)
	}
}

// decomposeRest decomposes the square matrix r, and multiplies u and v by its vectors.
func decomposeRest(p *simd.Pool, r, u Matrix, s []float32, v Matrix, limit float64, depth int) {
	k := r.Rows
	m := take(2*k*k + max(u.Rows*k, k*v.Cols))
	defer m.give()
	left, right := Matrix{m.data[:k*k], k, k, k}, Matrix{m.data[k*k : 2*k*k], k, k, k}
	decompose(p, r, left, s, right, limit, depth+1)
	turned := Matrix{m.data[2*k*k:], u.Rows, k, k}
	mul(p, turned, n(u), n(left))
	for i := range u.Rows {
		copy(u.row(i), turned.row(i))
	}
	turned = Matrix{m.data[2*k*k:], k, v.Cols, v.Cols}
	mul(p, turned, n(right), n(v))
	for i := range k {
		copy(v.row(i), turned.row(i))
	}
}

// diagonalRows returns how many of the first rows of the upper triangular r count as diagonal: all rows if the norm of the elements
// right of the diagonal is at most limit, else as many rows as have a norm of at most limit/4 together.
func diagonalRows(r Matrix, limit float64) int {
	done, sum := 0, 0.0
	for i := range r.Rows {
		x := r.row(i)[i+1:]
		sum += float64(simd.Dot(x, x))
		if sum <= limit*limit/16 {
			done = i + 1
		}
	}
	if sum <= limit*limit {
		return r.Rows
	}
	return done
}

// frobenius returns the square root of the sum of the squares of the elements.
func frobenius(m Matrix) float64 {
	sum := 0.0
	for i := range m.Rows {
		sum += float64(simd.Dot(m.row(i), m.row(i)))
	}
	return math.Sqrt(sum)
}

// order sorts the singular values in descending order, with the columns of u and the rows of v,
// which it writes to vt.
func order(s []float32, u, v, vt Matrix) {
	k := len(s)
	values := make([]float64, k)
	sorted := true
	for i, x := range s {
		values[i] = -float64(x)
		sorted = sorted && (i == 0 || x <= s[i-1])
	}
	if sorted {
		for i := range k {
			copy(vt.row(i), v.row(i))
		}
		return
	}
	m := take(2 * k * u.Rows)
	ut := Matrix{m.data, k, u.Rows, u.Rows}
	transpose(ut, u)
	again := append([]float64(nil), values...)
	sortRows(values, ut, m.data[k*u.Rows:])
	transpose(u, ut)
	m.give()
	m = take(k * v.Cols)
	sortRows(again, v, m.data)
	m.give()
	for i := range k {
		s[i] = float32(-values[i])
		copy(vt.row(i), v.row(i))
	}
}
