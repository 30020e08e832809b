package linalg

import (
	"math"

	"github.com/rayo-go/rayo/simd"
)

// SVD decomposes a, which has m rows and n columns, as U·diag(s)·Vᵀ: u is m×k, s has k
// elements in descending order, and vt is k×n, with k = min(m, n). It does not change a. It
// reports whether a is finite; if not, the results are undefined.
//
// V has the eigenvectors of AᵀA, so the columns of A·V are almost orthogonal. The off-diagonal
// elements of R in their QR factorisation show how far they are from orthogonal. If these are
// larger than rounding errors, as they are if some columns are very small, rotations make R
// diagonal.
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
	k := a.Cols
	m := take(3*k*k + a.Rows*k)
	defer m.give()
	gram, v := Matrix{m.data[:k*k], k, k, k}, Matrix{m.data[k*k : 2*k*k], k, k, k}
	r, b := Matrix{m.data[2*k*k : 3*k*k], k, k, k}, Matrix{m.data[3*k*k:], a.Rows, k, k}
	mul(p, gram, t(a), n(a))
	eighRows(p, gram, v)
	for i := range k / 2 { // descending order
		swap(v, i, k-1-i)
	}
	mul(p, b, n(a), t(v))
	f := NewQR(p, b)
	f.R(r)
	f.Q(p, u)
	if off(r) > 0x1p-23*float64(k) {
		turned := New(k, k) // the vectors of R, by rows
		jacobi(r, v, turned)
		mul(p, b, n(u), t(turned))
		for i := range b.Rows {
			copy(u.row(i), b.row(i))
		}
		for i := range s {
			s[i] = r.Data[i*k+i]
		}
	} else {
		for i := range s {
			if s[i] = r.Data[i*k+i]; s[i] < 0 {
				s[i] = -s[i]
				simd.Neg(v.row(i), v.row(i))
			}
		}
	}
	order(s, u, v, vt)
}

// off returns the norm of the off-diagonal elements of r, for a norm of r of about 1.
func off(r Matrix) float64 {
	sum, all := 0.0, 0.0
	for i := range r.Rows {
		x := r.row(i)
		sum += float64(simd.Dot(x[i+1:], x[i+1:]))
		all += float64(simd.Dot(x[i:], x[i:]))
	}
	if all == 0 {
		return 0
	}
	return math.Sqrt(sum / all)
}

// negligible is the length below which a row of R counts as zero, for a norm of R of about 1.
const negligible = 0x1p-28

// jacobi makes the rows of r orthogonal, by rotations from the left. On return the diagonal of r
// has the singular values, the rows of u have the accumulated rotations, and the rows of v are
// multiplied by the directions of the rows.
func jacobi(r, v, u Matrix) {
	k := r.Rows
	for i := range k {
		u.row(i)[i] = 1
	}
	for range 30 {
		turned := false
		for i := range k {
			for j := i + 1; j < k; j++ {
				x, y := r.row(i), r.row(j)
				aa, bb, ab := simd.Dot(x, x), simd.Dot(y, y), float64(simd.Dot(x, y))
				least := math.Sqrt(float64(aa)) * math.Sqrt(float64(bb))
				if math.Abs(ab) <= 0x1p-23*least || least < negligible*negligible/4 {
					continue
				}
				turned = true
				theta := (float64(bb) - float64(aa)) / (2 * ab)
				tangent := math.Copysign(1, theta) / (math.Abs(theta) + math.Hypot(theta, 1))
				c := 1 / math.Hypot(tangent, 1)
				turn(x, y, float32(c), float32(c*tangent))
				turn(u.row(i), u.row(j), float32(c), float32(c*tangent))
			}
		}
		if !turned {
			break
		}
	}
	// R = uᵀ·diag(lengths)·directions, so A = Q·uᵀ·diag·(directions·v).
	directions := New(k, k)
	for i := range k {
		length := norm(r.row(i))
		if length > negligible {
			simd.Scale(directions.row(i), r.row(i), float32(1/length))
		} else {
			length = 0
		}
		clear(r.row(i))
		r.row(i)[i] = float32(length)
	}
	complete(directions, r)
	old := v.clonePacked()
	mul(nil, v, n(directions), n(old))
}

// clonePacked returns a copy without gaps.
func (m Matrix) clonePacked() Matrix {
	c := New(m.Rows, m.Cols)
	for i := range m.Rows {
		copy(c.row(i), m.row(i))
	}
	return c
}

// complete replaces zero rows by unit vectors that are orthogonal to the other rows.
func complete(rows, r Matrix) {
	k := rows.Rows
	e := 0
	for i := range k {
		if r.row(i)[i] > 0 {
			continue
		}
		x := rows.row(i)
		for ; e < k; e++ {
			clear(x)
			x[e] = 1
			for range 2 {
				for j := range k {
					if y := rows.row(j); j != i && (r.row(j)[j] > 0 || j < i) {
						simd.Axpy(x, y, x, -simd.Dot(x, y))
					}
				}
			}
			if size := norm(x); size > 0.5/math.Sqrt(float64(k)) {
				simd.Scale(x, x, float32(1/size))
				break
			}
		}
	}
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
