package op

import (
	"cmp"
	"errors"
	"github.com/rayo-go/rayo/internal/irhook"
	"math"
	"slices"
)

// defEigh finds the eigenvalues and eigenvectors of symmetric matrices.
var defEigh = Operation{define: func() *definition {
	return add(&definition{name: "eigh", class: Shaped, selfTest: &irhook.SelfTest{Shapes: [][]int{{2, 5, 5}}, Dominant: true}, doc: "the eigenvalues of symmetric matrices in ascending order, and orthonormal eigenvectors",
		formula: "A·V = V·diag(w), Vᵀ·V = I", inputs: []string{"a"}, arity: [2]int{1, 1}, outs: 2,
		shapes: "a [... n n]; gives w [... n] and V [... n n], whose columns are the vectors", types: float32s(2), shape: eighShape,
		tol: Tolerance{ULP: 1, Mag: residuals}, ref: eighReference, check: eighCheck,
		special: "Only the lower triangle of a is read. The signs of vectors are not defined, nor is the basis of the vectors of equal eigenvalues. A matrix with NaN or an infinity in that triangle gives NaN in all elements. The magnitude of the tolerance is n·‖A‖; ‖A·V - V·diag(w)‖ is at most 30·n·ε·‖A‖, ‖I - Vᵀ·V‖ at most 30·n·ε.",
		flops:   func(_ *Attrs, in, _ []Shape) float64 { return 9 * elements(in[0]) * float64(in[0][len(in[0])-1]) }})
}}

func eighShape(_ *Attrs, in []Shape) ([]Shape, error) {
	lead, n, err := squareOf(in[0])
	if err != nil {
		return nil, err
	}
	return []Shape{append(lead, n), slices.Clone(in[0])}, nil
}

// symmetric returns the symmetric matrix with the lower triangle of a.
func symmetric(a matrix) matrix {
	x := a.clone()
	for i := range a.rows {
		for j := range i {
			x.set(j, i, a.at(i, j))
		}
	}
	return x
}

// jacobi diagonalises a symmetric matrix by rotations. It returns the eigenvalues w in ascending
// order and the eigenvectors as the columns of v.
func jacobi(a matrix) (w []float64, v matrix) {
	n := a.rows
	a, vt := a.clone(), identityMatrix(n)
	for range 60 {
		turned := false
		for p := range n {
			for q := p + 1; q < n; q++ {
				turned = rotateSymmetric(a, vt, p, q) || turned
			}
		}
		if !turned {
			break
		}
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(a.at(i, i), a.at(j, j)) })
	v = newMatrix(n, n)
	for k, i := range order {
		w = append(w, a.at(i, i))
		for j, x := range vt.row(i) {
			v.set(j, k, x)
		}
	}
	return w, v
}

// rotateSymmetric makes element (p, q) zero and reports whether it was not.
func rotateSymmetric(a, vt matrix, p, q int) bool {
	x := a.at(p, q)
	if math.Abs(x) <= 0x1p-52*(math.Sqrt(math.Abs(a.at(p, p)))*math.Sqrt(math.Abs(a.at(q, q)))) || math.Abs(x) < 0x1p-1000 {
		return false
	}
	theta := (a.at(q, q) - a.at(p, p)) / (2 * x)
	t := math.Copysign(1, theta) / (math.Abs(theta) + math.Hypot(theta, 1))
	c := 1 / math.Hypot(t, 1)
	s := t * c
	for i := range a.rows {
		y, z := a.at(i, p), a.at(i, q)
		a.set(i, p, c*y-s*z)
		a.set(i, q, s*y+c*z)
	}
	turnRows(a, p, q, c, s)
	turnRows(vt, p, q, c, s)
	return true
}

// turnRows rotates rows p and q of a.
func turnRows(a matrix, p, q int, c, s float64) {
	x, y := a.row(p), a.row(q)
	for i, v := range x {
		x[i], y[i] = c*v-s*y[i], s*v+c*y[i]
	}
}

func eighReference(_ *Attrs, in, out []*Array) {
	out[0].Mag = make([]float64, len(out[0].Data))
	out[1].open()
	if len(in[0].Data) == 0 {
		return
	}
	matrices(in[0].Shape, func(i int) {
		a := symmetric(in[0].matrixAt(i))
		values, vectors := out[0].vectorAt(i), out[1].matrixAt(i)
		if !a.finite() {
			fill(values, math.NaN())
			fill(vectors.v, math.NaN())
			fill(out[1].Mag[i*len(vectors.v):][:len(vectors.v)], 0)
			return
		}
		w, v := jacobi(a)
		copy(values, w)
		copy(vectors.v, v.v)
		fill(out[0].Mag[i*a.rows:][:a.rows], float64(a.rows)*a.norm())
	})
}

func eighCheck(_ *Attrs, in, out []*Array, i int) error {
	a, w, v := symmetric(in[0].matrixAt(i)), out[0].vectorAt(i), out[1].matrixAt(i)
	if !a.finite() {
		return nil
	}
	if !slices.IsSorted(w) {
		return errors.New("the eigenvalues are not in ascending order")
	}
	if err := orthonormal("V", v); err != nil {
		return err
	}
	return small("‖A·V - V·diag(w)‖", a.times(v).less(v.scaled(w)), a.rows, a.norm())
}
