package op

import (
	"errors"
	"github.com/rayo-go/rayo/internal/irhook"
	"math"
	"slices"
)

// defCholesky factors symmetric positive definite matrices.
var defCholesky = Operation{define: func() *definition {
	return add(&definition{name: "cholesky", class: Shaped, selfTest: &irhook.SelfTest{Shapes: [][]int{{2, 5, 5}}, Dominant: true}, doc: "the lower triangular L with A = L·Lᵀ of symmetric positive definite matrices",
		formula: "L·Lᵀ = A, L[i, j] = 0 for j > i", inputs: []string{"a"}, arity: [2]int{1, 1},
		shapes: "a [... n n]; gives [... n n]", types: float32s(1), shape: squareShape, ref: choleskyReference, check: choleskyCheck,
		special: "Only the lower triangle of a is read. A matrix that is not positive definite, or has a NaN or an infinity in that triangle, gives NaN in all elements. The residual ‖A - L·Lᵀ‖ is at most 30·n·ε·‖A‖.",
		flops: func(_ *Attrs, in, _ []Shape) float64 {
			n := float64(in[0][len(in[0])-1])
			return elements(in[0]) * n / 3
		}})
}}

// factorCholesky returns L and the smallest quotient of a pivot and its diagonal element. The
// quotient is not positive if the matrix has no factor L.
func factorCholesky(a matrix) (l matrix, margin float64) {
	l, margin = newMatrix(a.rows, a.rows), 1
	for i := range a.rows {
		for j := range i + 1 {
			s := a.at(i, j)
			for k := range j {
				s -= l.at(i, k) * l.at(j, k)
			}
			if j < i {
				l.set(i, j, s/l.at(j, j))
				continue
			}
			if margin = min(margin, s/math.Abs(a.at(i, i))); !(s > 0) || math.IsInf(s, 1) {
				return l, math.Inf(-1) * max(math.Abs(min(margin, 0)), 0x1p-1000)
			}
			l.set(i, i, math.Sqrt(s))
		}
	}
	return l, margin
}

// doubtful, times the order of a matrix, is the quotient of a pivot and its diagonal element below
// which rounding in float32 decides whether a device finds the matrix positive definite.
const doubtful = 0x1p-16

func choleskyReference(_ *Attrs, in, out []*Array) {
	out[0].open()
	if len(in[0].Data) == 0 {
		return
	}
	matrices(in[0].Shape, func(i int) {
		a, y := in[0].matrixAt(i), out[0].matrixAt(i)
		l, margin := factorCholesky(a)
		if margin > 0 {
			copy(y.v, l.v)
			return
		}
		fill(y.v, math.NaN())
		if choleskyFails(a) {
			fill(out[0].Mag[i*len(y.v):][:len(y.v)], 0)
		}
	})
}

// choleskyFails reports whether a is clearly not positive definite: even if its diagonal is raised by
// as much as rounding may change it.
func choleskyFails(a matrix) bool {
	raised := a.clone()
	for i := range raised.rows {
		raised.set(i, i, raised.at(i, i)+doubtful*float64(raised.rows)*math.Abs(raised.at(i, i)))
	}
	_, margin := factorCholesky(raised)
	return !(margin > 0)
}

func choleskyCheck(_ *Attrs, in, out []*Array, i int) error {
	a, l := in[0].matrixAt(i), out[0].matrixAt(i)
	if _, margin := factorCholesky(a); l.allNaN() && !(margin > doubtful*float64(a.rows)) {
		return nil
	}
	whole := a.clone()
	for i := range a.rows {
		if slices.ContainsFunc(l.row(i)[i+1:], func(v float64) bool { return v != 0 }) {
			return errors.New("the factor L is not zero above its diagonal")
		}
		for j := range i {
			whole.set(j, i, a.at(i, j))
		}
	}
	return small("‖A - L·Lᵀ‖", l.times(l.t()).less(whole), a.rows, whole.norm())
}
