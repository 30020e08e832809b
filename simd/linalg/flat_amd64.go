//go:build amd64 && !noasm

package linalg

import (
	"math"
	"unsafe"

	"github.com/rayo-go/rayo/simd"
)

// flat is the largest order of matrices that are factored in a copy whose rows are whole vectors.
const flat = 128

// isFlat reports whether a matrix is factored in a table: the calls of other kernels for parts of so small a
// matrix would take longer than their arithmetic.
func isFlat(rows, cols int) bool {
	return simd.Active() >= simd.AVX2 && max(rows, cols) <= flat && min(rows, cols) > narrow
}

// A table is a matrix whose rows are whole vectors.
type table struct {
	data []vec
	row  int // the number of vectors of a row
}

// numbers returns the elements of row i from element j on.
func (t table) numbers(i, j int) []float32 {
	x := t.data[i*t.row : (i+1)*t.row]
	return unsafe.Slice(&x[0][0], Lanes*t.row)[j:]
}

// less subtracts a product from the m rows from row i on, in all vectors from v on. The product is that of m×k
// numbers of a, with the row stride ar and the column stride ac, and the k rows of b.
func (t table) less(i, v, m int, a []float32, ar, ac, k int, b []vec) {
	if m == 0 || k == 0 {
		return
	}
	_, _, _ = t.data[(i+m)*t.row-1], a[(m-1)*ar+(k-1)*ac], b[(k-1)*t.row+t.row-v-1]
	const size = 4 * Lanes
	rowsProductAVX2(&t.data[i*t.row+v][0], &a[0], &b[0][0], m, t.row-v, k, size*t.row, size, 4*ar, 4*ac, size*t.row, size, false)
}

// luFlat is [LU] for a small matrix.
func luFlat(a Matrix, pivots []int32) {
	row := (a.Cols + Lanes - 1) / Lanes
	s := takeVectors(a.Rows*row + 1)
	defer s.give()
	t, first := table{s.data[:a.Rows*row], row}, s.data[a.Rows*row:]
	for i := range a.Rows {
		x := t.numbers(i, 0)
		clear(x[copy(x, a.row(i)):])
	}
	for j := 0; j < len(pivots); j += Lanes {
		end := min(j+Lanes, len(pivots))
		t.panel(j, end, pivots, first)
		v := j/Lanes + 1
		if v == row {
			continue
		}
		// First the rows of U beside the panel, then the remaining matrix.
		for i := j + 1; i < end; i++ {
			t.less(i, v, 1, t.numbers(i, j), 0, 1, i-j, t.data[j*row+v:])
		}
		if end < a.Rows {
			t.less(end, v, a.Rows-end, t.from(end, j), Lanes*row, 1, end-j, t.data[j*row+v:])
		}
	}
	for i := range a.Rows {
		copy(a.row(i), t.numbers(i, 0))
	}
}

// from returns the numbers from element (i, j) to the end.
func (t table) from(i, j int) []float32 {
	return unsafe.Slice(&t.data[0][0], Lanes*len(t.data))[i*Lanes*t.row+j:]
}

// panel factors columns j to end-1, which are in one vector of a row. first has memory for a vector.
func (t table) panel(j, end int, pivots []int32, first []vec) {
	rows, width, v := len(t.data)/t.row, Lanes*t.row, j/Lanes
	for c := j; c < end; c++ {
		at, most := c, float32(-1)
		column := t.from(c, c)
		for i := 0; i < len(column); i += width {
			if x := abs(column[i]); x > most {
				at, most = c+i/width, x
			}
		}
		if pivots[c] = int32(at); at != c {
			x, y := t.data[c*t.row:(c+1)*t.row], t.data[at*t.row:(at+1)*t.row]
			for k, w := range x {
				x[k], y[k] = y[k], w
			}
		}
		pivot := column[0]
		if pivot == 0 {
			continue // the column is zero: there is nothing to eliminate
		}
		for i := width; i < len(column); i += width {
			column[i] /= pivot
		}
		if c+1 < end && c+1 < rows { // columns up to c do not change
			first[0] = t.data[c*t.row+v]
			clear(first[0][:c+1-j])
			t.rank(c+1, v, rows-c-1, column[width:], first)
		}
	}
}

// rank subtracts a product from vector v of the m rows from row i on. It is that of the numbers a, a row of the
// table apart, and the vector b.
func (t table) rank(i, v, m int, a []float32, b []vec) {
	_, _ = t.data[(i+m-1)*t.row+v], a[(m-1)*Lanes*t.row]
	const size = 4 * Lanes
	rowsProductAVX2(&t.data[i*t.row+v][0], &a[0], &b[0][0], m, 1, 1, size*t.row, size, size*t.row, 4, size, size, false)
}

// choleskyFlat is cholesky for a small matrix. It computes the rows of Lᵀ.
func choleskyFlat(a Matrix) bool {
	order, row := a.Rows, (a.Rows+Lanes-1)/Lanes
	s := takeVectors(order * row)
	defer s.give()
	t, width := table{s.data, row}, Lanes*row
	u := t.from(0, 0)
	for i := range order {
		for j, x := range a.row(i)[:i+1] {
			u[j*width+i] = x
		}
		clear(u[i*width : i*width+i])
		clear(u[i*width+order : (i+1)*width])
	}
	for j := 0; j < order; j += Lanes {
		v, end := j/Lanes, min(j+Lanes, order)
		t.less(j, v, end-j, u[j:], 1, width, j, s.data[v:])
		for i := j; i < end; i++ {
			if i > j {
				t.less(i, v, 1, t.from(j, i), 0, width, i-j, s.data[j*row+v:])
			}
			d := u[i*width+i]
			if !(d > 0) || math.IsInf(float64(d), 1) {
				return false
			}
			root := float32(math.Sqrt(float64(d)))
			f := vec{root, root, root, root, root, root, root, root}
			grid{s.data[i*row+v:], 1, 1}.divide(&f, row-v)
		}
	}
	for i := range order {
		for j := range a.row(i)[:i+1] {
			a.row(i)[j] = u[j*width+i]
		}
	}
	return true
}
