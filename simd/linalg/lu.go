package linalg

import (
	"math"

	"github.com/rayo-go/rayo/simd"
)

// narrow is the number of columns that LU factors one by one.
const narrow = 8

// LU factors a, which has m rows and n columns, as P·A = L·U with partial pivoting. L,
// without its diagonal of ones, and U overwrite a. Row i was exchanged with row
// pivots[i], for i from 0 to min(m, n)-1 in this order. A zero on the diagonal
// of U means that a is singular.
func LU(p *simd.Pool, a Matrix, pivots []int32) {
	a.check("A")
	k := min(a.Rows, a.Cols)
	if isFlat(a.Rows, a.Cols) {
		luFlat(a, pivots[:k])
		return
	}
	lu(p, a.part(0, 0, a.Rows, k), pivots[:k])
	if a.Cols > k { // more columns than rows: the others follow from L
		rest := a.part(0, k, a.Rows, a.Cols-k)
		exchange(rest, pivots[:k])
		Triangle{Unit: true}.solveLeft(p, a.part(0, 0, k, k), rest)
	}
}

// lu factors a matrix with at least as many rows as columns, by recursion on halves of the columns.
func lu(p *simd.Pool, a Matrix, pivots []int32) {
	cols := a.Cols
	if cols <= narrow {
		luColumns(a, pivots)
		return
	}
	h := cols / 2
	if h > base {
		h = half(cols)
	}
	left, right := a.part(0, 0, a.Rows, h), a.part(0, h, a.Rows, cols-h)
	lu(p, left, pivots[:h])
	exchange(right, pivots[:h])
	top, rest := right.part(0, 0, h, cols-h), right.part(h, 0, a.Rows-h, cols-h)
	Triangle{Unit: true}.solveLeft(p, left.part(0, 0, h, h), top)
	sub(p, rest, n(left.part(h, 0, a.Rows-h, h)), n(top))
	lu(p, rest, pivots[h:])
	exchange(left.part(h, 0, a.Rows-h, h), pivots[h:])
	for i := range pivots[h:] {
		pivots[h+i] += int32(h)
	}
}

// luColumns factors few columns one by one, in a transposed copy, where a column is contiguous.
func luColumns(a Matrix, pivots []int32) {
	rows := a.Rows
	s := take(a.Cols * rows)
	at := Matrix{s.data, a.Cols, rows, rows}
	transpose(at, a)
	for j := range a.Cols {
		x := at.row(j)
		to := j + greatest(x[j:])
		pivots[j] = int32(to)
		for k := j; to != j && k < len(at.Data); k += rows {
			at.Data[k], at.Data[k+to-j] = at.Data[k+to-j], at.Data[k]
		}
		pivot, factors := x[j], x[j+1:]
		if pivot == 0 {
			continue // the column is zero: there is nothing to eliminate
		}
		for i, v := range factors {
			factors[i] = v / pivot
		}
		for k := j + 1; k < a.Cols; k++ {
			y := at.row(k)[j:]
			less(y[1:], factors, y[0])
		}
	}
	transpose(a, at)
	s.give()
}

// greatest returns the index of the first element with the greatest magnitude that is not NaN, or 0.
func greatest(x []float32) int {
	at, most := 0, float32(-1)
	for i, v := range x {
		// Signs are random in practice, so a branch on them would be mispredicted.
		if v = math.Float32frombits(math.Float32bits(v) &^ (1 << 31)); v > most {
			at, most = i, v
		}
	}
	return at
}

// exchange exchanges row i with row pivots[i], one after the other.
func exchange(a Matrix, pivots []int32) {
	for i, at := range pivots {
		swap(a, i, int(at))
	}
}

func swap(a Matrix, i, j int) {
	if i == j {
		return
	}
	x, y := a.row(i), a.row(j)
	for k, v := range x {
		x[k], y[k] = y[k], v
	}
}

// SolveLU solves A·X = B with the result of [LU] for a square A; X overwrites b. It
// reports whether A is regular; if not, the content of b is undefined.
func SolveLU(p *simd.Pool, lu Matrix, pivots []int32, b Matrix) bool {
	for i := range lu.Rows {
		if lu.Data[i*lu.Stride+i] == 0 {
			return false
		}
	}
	exchange(b, pivots)
	Triangle{Unit: true}.SolveLeft(p, lu, b)
	Triangle{Upper: true}.SolveLeft(p, lu, b)
	return true
}

// Solve solves A·X = B for a square a, which it does not change; X overwrites b. It
// reports whether A is regular; if not, the content of b is undefined.
func Solve(p *simd.Pool, a, b Matrix) bool {
	a.check("A")
	b.check("B")
	s := take(a.Rows * a.Rows)
	defer s.give()
	lu := Matrix{s.data, a.Rows, a.Rows, a.Rows}
	for i := range a.Rows {
		copy(lu.row(i), a.row(i))
	}
	pivots := make([]int32, a.Rows)
	LU(p, lu, pivots)
	return SolveLU(p, lu, pivots, b)
}
