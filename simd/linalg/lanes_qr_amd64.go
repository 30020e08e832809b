//go:build amd64 && !noasm

package linalg

import "math"

// A reflection holds the numbers of a Householder reflection I - tau·v·vᵀ for each lane.
type reflection struct {
	beta, tau vec
	scale     vec // of the elements behind the first to make v, whose first element is 1
}

// reflector overwrites the first n elements of column 0 with the vector v of the reflection that maps them to (beta, 0, …, 0).
// n is at least 1. If the elements after the first have a Euclidean norm of at most least, they count as 0.
func (g grid) reflector(n int, least float64) (m reflection) {
	var sum [1]vec
	if n > 1 {
		tail := g.from(1, 0)
		grid{sum[:], 1, 1}.set(tail.t(), tail, 1, 1, n-1)
	}
	x := g.at(0, 0)
	for l, s := range sum[0] {
		square := float64(s)
		if !(s > 1e-30 && s < 1e30) && n > 1 {
			square = g.square(n, l)
		}
		alpha := float64(x[l])
		m.beta[l] = x[l]
		if square > least*least || square != square {
			b := -math.Copysign(math.Sqrt(alpha*alpha+square), alpha)
			m.beta[l], m.tau[l], m.scale[l] = float32(b), float32((b-alpha)/b), float32(1/(alpha-b))
			if math.Abs(alpha-b) < 1e-37 { // its reciprocal is beyond float32
				g.scaleLane(n, l, 1/(alpha-b))
				m.scale[l] = 1
			}
		}
		x[l] = 1
	}
	if n > 1 {
		g.from(1, 0).scale(&m.scale, n-1)
	}
	return m
}

// square returns the sum of the squares of elements 1 to n-1 of column 0 in one lane, in float64: the squares may be outside
// the range of float32.
func (g grid) square(n, lane int) (s float64) {
	for i := 1; i < n; i++ {
		v := float64(g.at(i, 0)[lane])
		s += v * v
	}
	return s
}

// scaleLane multiplies elements 1 to n-1 of column 0 by f, in one lane.
func (g grid) scaleLane(n, lane int, f float64) {
	for i := 1; i < n; i++ {
		x := g.at(i, 0)
		x[lane] = float32(float64(x[lane]) * f)
	}
}

// reflect applies the reflection of the column v of length n to m rows of g: y -= tau·(y·v)·v. w has room for m vectors.
func (g grid) reflect(v grid, tau *vec, m, n int, w []vec) {
	if m == 0 {
		return
	}
	products := grid{w, 1, 1}
	products.set(g, v, m, 1, n)
	products.scale(tau, m)
	g.less(products, v.t(), m, n, 1)
}

// accumulate writes the transpose of the product of k reflections to g, whose k rows have n elements. The vector of
// reflection i is row i of v from the diagonal on.
func (g grid) accumulate(v grid, taus []vec, k, n int, w []vec) {
	for i := k - 1; i >= 0; i-- {
		clear(g.from(i, 0).data[:n])
		for j := i + 1; j < k; j++ {
			*g.at(j, i) = vec{}
		}
		for l := range Lanes {
			g.at(i, i)[l] = 1
		}
		g.from(i, i).reflect(v.from(i, i).t(), &taus[i], k-i, n-i, w)
	}
}

// QRLanes writes the factors of [QR] of count matrices of rows×cols elements.
func QRLanes(q, r, a []float32, rows, cols, count int) (bad uint8) {
	k := min(rows, cols)
	m := takeVectors(rows*(cols+k) + 2*k + cols)
	defer m.give()
	at := grid{m.data[:rows*cols], rows, 1} // a row is a column of a matrix
	qt := grid{m.data[rows*cols:][:rows*k], rows, 1}
	rest := m.data[rows*(cols+k):]
	betas, taus, w := rest[:k], rest[k:2*k], rest[2*k:]
	packTransposed(at.data, a, rows, cols, count)
	for j := range k {
		v := at.from(j, j).t()
		f := v.reflector(rows-j, 0)
		betas[j], taus[j] = f.beta, f.tau
		if j+1 < cols {
			at.from(j+1, j).reflect(v, &f.tau, cols-j-1, rows-j, w)
		}
	}
	qt.accumulate(at, taus, k, rows, w)
	for j := range k { // R remains
		*at.at(j, j) = betas[j]
		clear(at.data[j*rows+j+1 : j*rows+k])
	}
	if bad = infinite(m.data[:rows*(cols+k)]) & used(count); bad != used(count) {
		unpackTransposed(q, qt, rows, k, count, bad)
		unpackTransposed(r, at, k, cols, count, bad)
	}
	return bad
}
