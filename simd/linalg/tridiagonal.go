package linalg

import (
	"math"

	"github.com/rayo-go/rayo/simd"
)

// A tridiagonal is the tridiagonal matrix Qᵀ·A·Q for a symmetric A, and Q.
type tridiagonal struct {
	d, e []float64 // its diagonal and off-diagonal
	// q has the reflections whose product is Q. Their order is n-1, because they do not change the
	// first row.
	q *QR
}

// reduceSymmetric reduces the symmetric matrix a to tridiagonal form. It overwrites both triangles of a.
func reduceSymmetric(p *simd.Pool, a Matrix) *tridiagonal {
	order := a.Rows
	t := &tridiagonal{d: make([]float64, order), e: make([]float64, max(order-1, 0))}
	t.q = &QR{at: New(max(order-1, 0), max(order-1, 0)), diag: make([]float32, max(order-1, 0))}
	s := take(4 * panel * order)
	defer s.give()
	step := panel
	if order <= 2*panel {
		step = panel / 4 // the products are too small for wider panels to help
	}
	for j := 0; j < order; j += step {
		width := min(step, order-j)
		rest := order - j
		f := &symmetricPanel{a: a.part(j, j, rest, rest), width: width}
		f.v, f.w = Matrix{s.data, width, rest, rest}, Matrix{s.data[2*panel*order:], width, rest, rest}
		f.reduce(p, t, j)
		if rest > width {
			f.update(p)
		}
	}
	return t
}

// symmetricPanel is the reduction of some columns. The remaining matrix is a - VᵀW - WᵀV for the
// rows of v and w that have been computed.
type symmetricPanel struct {
	a, v, w Matrix
	width   int
}

// reduce reduces the columns; the first is column j of the whole matrix.
func (f *symmetricPanel) reduce(p *simd.Pool, t *tridiagonal, j int) {
	rest := f.a.Rows
	for k := range f.width {
		x := f.v.row(k)
		copy(x[k:], f.a.row(k)[k:])
		for i := range k {
			v, w := f.v.row(i), f.w.row(i)
			less(x[k:], v[k:], w[k])
			less(x[k:], w[k:], v[k])
		}
		t.d[j+k] = float64(x[k])
		clear(x[:k+1])
		if k+1 == rest {
			clear(f.w.row(k))
			continue
		}
		tail := x[k+1:]
		beta, tau := reflector(tail)
		t.e[j+k] = float64(beta)
		tail[0] = 1
		t.q.taus = append(t.q.taus, tau)
		copy(t.q.at.row(j + k)[j+k:], tail)
		f.multiply(p, k, tau)
	}
}

// multiply computes row k of w: tau·(A·v - (tau/2)·(vᵀ·A·v)·v) for the current A.
func (f *symmetricPanel) multiply(p *simd.Pool, k int, tau float32) {
	from := k + 1
	v, w := f.v.row(k)[from:], f.w.row(k)[from:]
	clear(f.w.row(k)[:from])
	n := len(v)
	if n <= 64 {
		for i := range n {
			w[i] = dot(f.a.row(from + i)[from:], v)
		}
	} else {
		g := simd.Gemm{M: n, N: 1, K: n, A: f.a.part(from, from, n, n).Data, ARow: f.a.Stride, ACol: 1, B: v, BRow: 1, BCol: 1, C: w, CRow: 1}
		g.Run(p)
	}
	for i := range k {
		x, y := f.v.row(i)[from:], f.w.row(i)[from:]
		s, r := dot(y, v), dot(x, v)
		less(w, x, s)
		less(w, y, r)
	}
	simd.Scale(w, w, tau)
	simd.Axpy(w, v, w, -tau/2*simd.Dot(w, v))
}

// update subtracts VᵀW + WᵀV from the part after the columns. v and w have memory for twice their number
// of rows.
func (f *symmetricPanel) update(p *simd.Pool) {
	rest, width := f.a.Rows, f.width
	both := Matrix{f.v.Data[:2*width*rest], 2 * width, rest, rest}
	other := Matrix{f.w.Data[:2*width*rest], 2 * width, rest, rest}
	for k := range width {
		copy(other.row(width+k), f.v.row(k))
		simd.Neg(both.row(k), f.v.row(k))
		simd.Neg(both.row(width+k), f.w.row(k))
	}
	// both is (-V, -W), and other is (W, V).
	n := rest - width
	g := simd.Gemm{M: n, N: n, K: 2 * width, A: both.Data[width:], ARow: 1, ACol: rest, B: other.Data[width:], BRow: rest, BCol: 1,
		C: f.a.part(width, width, n, n).Data, CRow: f.a.Stride, Accumulate: true}
	g.Run(p)
}

// triangleOf returns the triangle T of the compact WY form of reflections, one in each row of v,
// whose first element 1 is on the diagonal.
func triangleOf(p *simd.Pool, v Matrix, taus []float32) Matrix {
	width := v.Rows
	tri, gram, rows := New(width, width), New(width, width), New(width, width)
	mul(p, gram, n(v), t(v))
	for k, tau := range taus[:width] { // row k is column k of the triangle
		x := rows.row(k)
		for l, g := range gram.row(k)[:k] {
			less(x[:l+1], rows.Data[l*width:], tau*g)
		}
		x[k] = tau
	}
	transpose(tri, rows)
	return tri
}

// multiplyQ multiplies the vectors in the rows of a matrix by Q.
func (t *tridiagonal) multiplyQ(p *simd.Pool, rows Matrix) {
	for block := t.q.blocks() - 1; block >= 0; block-- {
		j := 1 + block*panel
		t.q.apply(p, block, true, rows.part(0, j, rows.Rows, rows.Cols-j))
	}
}

// ql diagonalises a tridiagonal matrix by implicit QL iterations. It writes the eigenvalues to d
// in any order, and applies the rotations to the rows of vt. It reports whether it converged.
func ql(d, e []float64, vt Matrix) bool {
	order := len(d)
	off := append(append(make([]float64, 0, order), e...), 0)
	for l := range order {
		for turn := 0; ; turn++ {
			m := l
			for m+1 < order {
				if s := math.Abs(d[m]) + math.Abs(d[m+1]); math.Abs(off[m]) <= 0x1p-40*s || math.Abs(off[m]) < 0x1p-500 {
					break
				}
				m++
			}
			if m == l {
				break
			}
			if turn == 60 {
				return false
			}
			qlStep(d, off, l, m, vt)
		}
	}
	return true
}

// qlStep is one iteration on the elements from l to m.
func qlStep(d, e []float64, l, m int, vt Matrix) {
	g := (d[l+1] - d[l]) / (2 * e[l])
	r := math.Sqrt(g*g + 1)
	g = d[m] - d[l] + e[l]/(g+math.Copysign(r, g))
	s, c, shift := 1.0, 1.0, 0.0
	for i := m - 1; i >= l; i-- {
		f, b := s*e[i], c*e[i]
		r = math.Sqrt(f*f + g*g)
		if e[i+1] = r; r == 0 {
			d[i+1] -= shift
			e[m] = 0
			return
		}
		s, c = f/r, g/r
		g = d[i+1] - shift
		r = (d[i]-g)*s + 2*c*b
		shift = s * r
		d[i+1] = g + shift
		g = c*r - b
		at := i * vt.Stride
		turn(vt.Data[at:at+vt.Cols], vt.Data[at+vt.Stride:at+vt.Stride+vt.Cols], float32(c), float32(s))
	}
	d[l] -= shift
	e[l] = g
	e[m] = 0
}

// turn rotates two rows: x becomes c·x - s·y, y becomes s·x + c·y.
func turn(x, y []float32, c, s float32) {
	y = y[:len(x)]
	i := 0
	for ; i+4 <= len(x); i += 4 {
		a, b := (*[4]float32)(x[i:]), (*[4]float32)(y[i:])
		a0, a1, a2, a3 := a[0], a[1], a[2], a[3]
		b0, b1, b2, b3 := b[0], b[1], b[2], b[3]
		a[0], a[1], a[2], a[3] = c*a0-s*b0, c*a1-s*b1, c*a2-s*b2, c*a3-s*b3
		b[0], b[1], b[2], b[3] = s*a0+c*b0, s*a1+c*b1, s*a2+c*b2, s*a3+c*b3
	}
	for ; i < len(x); i++ {
		x[i], y[i] = c*x[i]-s*y[i], s*x[i]+c*y[i]
	}
}
