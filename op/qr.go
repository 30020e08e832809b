package op

import (
	"errors"
	"github.com/rayo-go/rayo/internal/irhook"
	"math"
	"slices"
)

// defQR factors matrices, square or not.
var defQR = Operation{define: func() *definition {
	return add(&definition{name: "qr", class: Shaped, selfTest: &irhook.SelfTest{Shapes: [][]int{{2, 7, 5}}, Dominant: true}, doc: "the reduced factors of A = Q·R, Q with orthonormal columns and R upper triangular",
		formula: "Q·R = A, Qᵀ·Q = I", inputs: []string{"a"}, arity: [2]int{1, 1}, outs: 2,
		shapes: "a [... m n]; gives Q [... m k] and R [... k n] with k = min(m, n)", types: float32s(2), shape: qrShape, ref: qrReference, check: qrCheck,
		special: "The signs of the rows of R and of the columns of Q are not defined. Matrices with NaN or infinities give elements that are not defined. ‖A - Q·R‖ is at most 30·max(m, n)·ε·‖A‖, ‖I - Qᵀ·Q‖ at most 30·max(m, n)·ε.",
		flops: func(_ *Attrs, in, _ []Shape) float64 {
			n := len(in[0]) - 2
			return 4 * elements(in[0]) * float64(min(in[0][n], in[0][n+1]))
		}})
}}

func qrShape(_ *Attrs, in []Shape) ([]Shape, error) {
	lead, m, n, err := matrixOf(in[0])
	if err != nil {
		return nil, err
	}
	k := min(m, n)
	return []Shape{append(lead, m, k), append(lead, k, n)}, nil
}

// factorQR returns the reduced factors, by reflections.
func factorQR(a matrix) (q, r matrix) {
	k := min(a.rows, a.cols)
	work, full := a.clone(), identityMatrix(a.rows)
	for j := range k {
		v := make([]float64, a.rows)
		s := 0.0
		for i := j; i < a.rows; i++ {
			v[i] = work.at(i, j)
			s = math.Hypot(s, v[i])
		}
		if s == 0 {
			continue
		}
		v[j] += math.Copysign(s, v[j])
		vv := 0.0
		for _, x := range v {
			vv += x * x
		}
		reflect(work, v, vv)
		reflect(full, v, vv)
	}
	q, r = newMatrix(a.rows, k), newMatrix(k, a.cols)
	for i := range a.rows {
		for j := range k {
			q.set(i, j, full.at(j, i))
		}
	}
	for i := range k {
		copy(r.row(i)[i:], work.row(i)[i:])
	}
	return q, r
}

// reflect computes x -= 2·v·(vᵀ·x)/vv.
func reflect(x matrix, v []float64, vv float64) {
	w := make([]float64, x.cols)
	for i, f := range v {
		for j, y := range x.row(i) {
			w[j] += f * y
		}
	}
	for i, f := range v {
		for j := range w {
			x.row(i)[j] -= 2 * f * w[j] / vv
		}
	}
}

func qrReference(_ *Attrs, in, out []*Array) {
	out[0].open()
	out[1].open()
	if len(in[0].Data) == 0 {
		return
	}
	matrices(in[0].Shape, func(i int) {
		q, r := factorQR(in[0].matrixAt(i))
		copy(out[0].matrixAt(i).v, q.v)
		copy(out[1].matrixAt(i).v, r.v)
	})
}

func qrCheck(_ *Attrs, in, out []*Array, i int) error {
	a, q, r := in[0].matrixAt(i), out[0].matrixAt(i), out[1].matrixAt(i)
	if !a.finite() {
		return nil
	}
	for i := range r.rows {
		if slices.ContainsFunc(r.row(i)[:i], func(v float64) bool { return v != 0 }) {
			return errors.New("the factor R is not zero below its diagonal")
		}
	}
	if err := orthonormal("Q", q); err != nil {
		return err
	}
	return small("‖A - Q·R‖", q.times(r).less(a), max(a.rows, a.cols), a.norm())
}
