package linalg

import (
	"math"

	"github.com/rayo-go/rayo/simd"
)

// panel is the number of columns that QR reduces one by one.
const panel = 32

// A QR is a factored matrix, as Householder vectors and their factors.
type QR struct {
	// at is the transpose of the factored matrix. The elements of row j before the diagonal
	// are column j of R without its diagonal element. The Householder vector of column j starts
	// at the diagonal, with a 1 that is not stored.
	at   Matrix
	diag []float32 // the diagonal of R
	taus []float32 // the factors of the reflections
	ts   []Matrix  // for each panel the triangle T of its compact form I - V·T·Vᵀ, computed at its first use
}

// NewQR factors a, which has m rows and n columns, as Q·R. It does not change a.
func NewQR(p *simd.Pool, a Matrix) *QR {
	a.check("A")
	q := &QR{at: New(a.Cols, a.Rows), diag: make([]float32, min(a.Rows, a.Cols))}
	transpose(q.at, a)
	for j := 0; j < len(q.diag); j += panel {
		q.reduce(p, j, min(panel, len(q.diag)-j))
	}
	return q
}

// reduce computes the Householder vectors of columns j to j+width-1, and applies them
// to the later columns.
func (q *QR) reduce(p *simd.Pool, j, width int) {
	rows := q.at.Cols - j
	v := q.at.part(j, j, width, rows)
	for k := range width {
		x := v.row(k)[k:]
		beta, tau := reflector(x)
		q.diag[j+k] = beta
		x[0] = 1
		for i := k + 1; i < width; i++ {
			y := v.row(i)[k:]
			less(y, x, tau*dot(x, y))
		}
		q.taus = append(q.taus, tau)
		x[0] = beta
	}
	if rest := q.at.Rows - j - width; rest > 0 {
		q.apply(p, j/panel, false, q.at.part(j+width, j, rest, rows))
	}
}

// triangle returns the triangle T of a panel.
func (q *QR) triangle(p *simd.Pool, block int, v Matrix) Matrix {
	for len(q.ts) <= block {
		q.ts = append(q.ts, Matrix{})
	}
	if q.ts[block].Data == nil {
		q.ts[block] = triangleOf(p, v, q.taus[block*panel:])
	}
	return q.ts[block]
}

// vectors returns the Householder vectors of a panel, one in each row, with the ones and with
// zeros in the place of R. The result is in the memory of s.
func (q *QR) vectors(block int) (v Matrix, s *scratch) {
	j := block * panel
	width, rows := min(panel, len(q.taus)-j), q.at.Cols-j
	s = take(width * rows)
	v = Matrix{s.data, width, rows, rows}
	for k := range width {
		clear(v.row(k)[:k])
		v.row(k)[k] = 1
		copy(v.row(k)[k+1:], q.at.part(j, j, width, rows).row(k)[k+1:])
	}
	return v, s
}

// apply multiplies the transpose c of a matrix C, from the first row of a panel on: C
// becomes Hᵀ·C, or with forward H·C, where H = I - V·T·Vᵀ.
func (q *QR) apply(p *simd.Pool, block int, forward bool, c Matrix) {
	v, sv := q.vectors(block)
	width := v.Rows
	s := take(2 * c.Rows * width)
	w := Matrix{s.data, c.Rows, width, width}
	wt := Matrix{s.data[c.Rows*width:], c.Rows, width, width}
	mul(p, w, n(c), t(v))
	// The transpose of (I - V·Tᵀ·Vᵀ)·C is Cᵀ - (Cᵀ·V)·T·Vᵀ.
	mul(p, wt, n(w), operand{q.triangle(p, block, v), forward})
	sub(p, c, n(wt), n(v))
	s.give()
	sv.give()
}

// reflector returns beta and tau of the Householder reflection I - tau·v·vᵀ that maps x to (beta,
// 0, …, 0), and overwrites x with v; the first element of v is 1 and is not stored.
func reflector(x []float32) (beta, tau float32) {
	alpha := float64(x[0])
	tail := norm(x[1:])
	if tail == 0 {
		return x[0], 0
	}
	b := -math.Copysign(math.Hypot(alpha, tail), alpha)
	scale := 1 / (alpha - b)
	if s := float32(scale); !math.IsInf(float64(s), 0) && s != 0 && math.Abs(scale) > 0x1p-126 {
		simd.Scale(x[1:], x[1:], s)
	} else {
		for i, v := range x[1:] {
			x[1+i] = float32(float64(v) * scale)
		}
	}
	return float32(b), float32((b - alpha) / b)
}

// norm returns the square root of the sum of x². It computes in float64 if float32
// would overflow or lose bits.
func norm(x []float32) float64 {
	if s := float64(simd.Dot(x, x)); s > 1e-30 && s < 1e30 {
		return math.Sqrt(s)
	}
	s := 0.0
	for _, v := range x {
		s += float64(v) * float64(v)
	}
	return math.Sqrt(s)
}

// R writes the upper triangular factor, min(m, n)×n, to r.
func (q *QR) R(r Matrix) {
	r.check("R")
	for i := range r.Rows {
		row := r.row(i)
		clear(row[:i])
		row[i] = q.diag[i]
		for j := i + 1; j < len(row); j++ {
			row[j] = q.at.Data[j*q.at.Stride+i]
		}
	}
}

// Q writes the factor with orthonormal columns, m×min(m, n), to dst.
func (q *QR) Q(p *simd.Pool, dst Matrix) {
	dst.check("Q")
	k := len(q.diag)
	s := take(k * dst.Rows)
	qt := Matrix{s.data, k, dst.Rows, dst.Rows}
	clear(s.data)
	for i := range k {
		qt.row(i)[i] = 1
	}
	if k <= panel {
		q.reflect(qt)
		transpose(dst, qt)
		s.give()
		return
	}
	for block := q.blocks() - 1; block >= 0; block-- {
		// The columns of Q before this panel are still unit vectors.
		j := block * panel
		q.apply(p, block, true, qt.part(j, j, k-j, dst.Rows-j))
	}
	transpose(dst, qt)
	s.give()
}

// reflect applies the reflections to the rows of the identity, the last first: rows before a
// reflection's own row have not changed yet.
func (q *QR) reflect(qt Matrix) {
	for k := len(q.taus) - 1; k >= 0; k-- {
		x := q.at.row(k)[k:]
		beta := x[0]
		x[0] = 1
		for i := k; i < qt.Rows; i++ {
			y := qt.row(i)[k:]
			less(y, x, q.taus[k]*dot(x, y))
		}
		x[0] = beta
	}
}

// blocks returns the number of panels.
func (q *QR) blocks() int { return (len(q.taus) + panel - 1) / panel }

// MulQT overwrites b, which has m rows, with Qᵀ·B for the complete, square Q of order m.
func (q *QR) MulQT(p *simd.Pool, b Matrix) {
	b.check("B")
	s := take(b.Rows * b.Cols)
	bt := Matrix{s.data, b.Cols, b.Rows, b.Rows}
	transpose(bt, b)
	for block := range q.blocks() {
		j := block * panel
		q.apply(p, block, false, bt.part(0, j, b.Cols, b.Rows-j))
	}
	transpose(b, bt)
	s.give()
}
