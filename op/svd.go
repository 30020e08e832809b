package op

import (
	"cmp"
	"errors"
	"github.com/rayo-go/rayo/internal/irhook"
	"math"
	"slices"
)

// defSVD decomposes matrices, square or not.
var defSVD = Operation{define: func() *definition {
	return add(&definition{name: "svd", class: Shaped, selfTest: &irhook.SelfTest{Shapes: [][]int{{2, 7, 5}}, Dominant: true}, doc: "the reduced singular value decomposition A = U·diag(s)·Vᵀ",
		formula: "U·diag(s)·Vᵀ = A, Uᵀ·U = I, Vᵀ·V = I", inputs: []string{"a"}, arity: [2]int{1, 1}, outs: 3,
		shapes: "a [... m n]; gives U [... m k], s [... k] and Vᵀ [... k n] with k = min(m, n)", types: float32s(3), shape: svdShape,
		tol: Tolerance{ULP: 1, Mag: residuals}, ref: svdReference, check: svdCheck,
		special: "The singular values are in descending order and not negative. The signs of vectors are not defined, nor is the basis of the vectors of equal singular values. A matrix with NaN or an infinity gives NaN in all elements. The magnitude of the tolerance is max(m, n)·‖A‖; ‖A - U·diag(s)·Vᵀ‖ is at most 30·max(m, n)·ε·‖A‖, ‖I - Uᵀ·U‖ and ‖I - V·Vᵀ‖ at most 30·max(m, n)·ε.",
		flops: func(_ *Attrs, in, _ []Shape) float64 {
			n := len(in[0]) - 2
			return 20 * elements(in[0]) * float64(min(in[0][n], in[0][n+1]))
		}})
}}

func svdShape(_ *Attrs, in []Shape) ([]Shape, error) {
	lead, m, n, err := matrixOf(in[0])
	if err != nil {
		return nil, err
	}
	k := min(m, n)
	return []Shape{append(lead, m, k), append(lead, k), append(lead, k, n)}, nil
}

// singular returns the decomposition of a: a QR factorisation, then Jacobi's one-sided rotations of
// the columns of R.
func singular(a matrix) (u matrix, s []float64, vt matrix) {
	if a.rows < a.cols {
		u, s, vt = singular(a.t())
		return vt.t(), s, u.t()
	}
	q, r := factorQR(a)
	n := a.cols
	w, v := r.t(), identityMatrix(n) // rows are columns of R·V, and of V
	for range 60 {
		turned := false
		for i := range n {
			for j := i + 1; j < n; j++ {
				turned = rotateColumns(w, v, i, j) || turned
			}
		}
		if !turned {
			break
		}
	}
	order, sizes := make([]int, n), make([]float64, n)
	for i := range order {
		order[i] = i
		sizes[i] = matrix{1, n, w.row(i)}.norm()
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(sizes[j], sizes[i]) })
	ut, vt := newMatrix(n, n), newMatrix(n, n)
	for k, i := range order {
		s = append(s, sizes[i])
		copy(vt.row(k), v.row(i))
		if sizes[i] > 0x1p-40*s[0] {
			for j, x := range w.row(i) {
				ut.set(k, j, x/sizes[i])
			}
			continue
		}
		complete(ut, k)
	}
	return q.times(ut.t()), s, vt
}

// complete makes row k a unit vector orthogonal to the rows before it.
func complete(m matrix, k int) {
	for e := range m.cols {
		x := m.row(k)
		clear(x)
		x[e] = 1
		for range 2 {
			for i := range k {
				d := 0.0
				for j, v := range m.row(i) {
					d += v * x[j]
				}
				for j, v := range m.row(i) {
					x[j] -= d * v
				}
			}
		}
		if size := (matrix{1, m.cols, x}).norm(); size > 0.5/math.Sqrt(float64(m.cols)) {
			for j := range x {
				x[j] /= size
			}
			return
		}
	}
}

// rotateColumns makes rows i and j of w orthogonal and reports whether they were not.
func rotateColumns(w, v matrix, i, j int) bool {
	aa, bb, ab := 0.0, 0.0, 0.0
	for k, x := range w.row(i) {
		y := w.at(j, k)
		aa += x * x
		bb += y * y
		ab += x * y
	}
	if math.Abs(ab) <= 0x1p-50*math.Sqrt(aa)*math.Sqrt(bb) || math.Abs(ab) < 0x1p-1000 {
		return false
	}
	theta := (bb - aa) / (2 * ab)
	t := math.Copysign(1, theta) / (math.Abs(theta) + math.Hypot(theta, 1))
	c := 1 / math.Hypot(t, 1)
	turnRows(w, i, j, c, t*c)
	turnRows(v, i, j, c, t*c)
	return true
}

func svdReference(_ *Attrs, in, out []*Array) {
	out[0].open()
	out[1].Mag = make([]float64, len(out[1].Data))
	out[2].open()
	if len(in[0].Data) == 0 {
		return
	}
	matrices(in[0].Shape, func(i int) {
		a := in[0].matrixAt(i)
		u, s, vt := out[0].matrixAt(i), out[1].vectorAt(i), out[2].matrixAt(i)
		if !a.finite() {
			for _, r := range []struct {
				of *Array
				v  []float64
			}{{out[0], u.v}, {out[1], s}, {out[2], vt.v}} {
				fill(r.v, math.NaN())
				fill(r.of.Mag[i*len(r.v):][:len(r.v)], 0)
			}
			return
		}
		x, y, z := singular(a)
		copy(u.v, x.v)
		copy(s, y)
		copy(vt.v, z.v)
		fill(out[1].Mag[i*len(s):][:len(s)], float64(max(a.rows, a.cols))*a.norm())
	})
}

func svdCheck(_ *Attrs, in, out []*Array, i int) error {
	a, u, s, vt := in[0].matrixAt(i), out[0].matrixAt(i), out[1].vectorAt(i), out[2].matrixAt(i)
	if !a.finite() {
		return nil
	}
	if !slices.IsSortedFunc(s, func(x, y float64) int { return cmp.Compare(y, x) }) || len(s) > 0 && !(s[len(s)-1] >= 0) {
		return errors.New("the singular values are not in descending order, or some are negative")
	}
	if err := orthonormal("U", u); err != nil {
		return err
	}
	if err := orthonormal("V", vt.t()); err != nil {
		return err
	}
	return small("‖A - U·diag(s)·Vᵀ‖", u.scaled(s).times(vt).less(a), max(a.rows, a.cols), a.norm())
}
