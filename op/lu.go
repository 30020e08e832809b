package op

import (
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/irhook"
	"math"
	"slices"
)

// Factorisation of general matrices by Gaussian elimination.
var (
	// defLU factors matrices, square or not.
	defLU = Operation{define: func() *definition {
		return add(&definition{name: "lu", class: Shaped, selfTest: &irhook.SelfTest{Shapes: [][]int{{2, 5, 5}}, Dominant: true}, doc: "the factors of P·A = L·U with partial pivoting, and the row exchanges",
			formula: "P·A = L·U", inputs: []string{"a"}, arity: [2]int{1, 1}, outs: 2,
			shapes: "a [... m n]; gives L and U in one array [... m n] and pivots [... min(m, n)]",
			types:  func(a *Attrs, in []DType) ([]DType, error) { t, err := float32s(1)(a, in); return append(t, I32), err },
			shape:  luShape, ref: luReference, check: luCheck,
			special: "L is stored below the diagonal, without its unit diagonal, and U on and above it. Rows i and pivots[i] were exchanged, for i = 0, 1, 2 and so on. A zero on the diagonal of U means that a is singular; elimination then continues with the next column. Matrices with NaN or infinities give elements that are not defined. The residual ‖P·A - L·U‖ is at most 30·max(m, n)·ε·‖A‖.",
			flops: func(_ *Attrs, in, _ []Shape) float64 {
				n := len(in[0]) - 2
				return elements(in[0]) * float64(min(in[0][n], in[0][n+1])) * 2 / 3
			}})
	}}

	// defSolve solves systems of equations.
	defSolve = Operation{define: func() *definition {
		return add(&definition{name: "solve", class: Shaped, selfTest: &irhook.SelfTest{Shapes: [][]int{{2, 5, 5}, {2, 5, 3}}, Dominant: true}, doc: "the X with A·X = B for square A, by LU with partial pivoting",
			formula: "A·X = B", inputs: []string{"a", "b"}, arity: [2]int{2, 2},
			shapes: "a [... n n] and b [... n k] with the same leading extents; gives [... n k]", types: float32s(1), shape: systemShape,
			ref: solveReference, check: solveCheck,
			special: "A matrix that gives a pivot of exactly 0 is singular: all elements of the result are NaN. Matrices with NaN or infinities give elements that are not defined. The residual ‖A·X - B‖ is at most 30·n·ε·‖A‖·‖X‖; the error of X is at most this bound times the condition number of A.",
			flops: func(_ *Attrs, in, _ []Shape) float64 {
				n := float64(in[0][len(in[0])-1])
				return elements(in[0])*n*2/3 + 2*elements(in[1])*n
			}})
	}}
)

func luShape(_ *Attrs, in []Shape) ([]Shape, error) {
	lead, m, n, err := matrixOf(in[0])
	if err != nil {
		return nil, err
	}
	return []Shape{slices.Clone(in[0]), append(lead, min(m, n))}, nil
}

// factorLU overwrites a with its factors.
func factorLU(a matrix) (pivots []int) {
	for k := range min(a.rows, a.cols) {
		at := k
		for i := k + 1; i < a.rows; i++ {
			if math.Abs(a.at(i, k)) > math.Abs(a.at(at, k)) {
				at = i
			}
		}
		pivots = append(pivots, at)
		swapRows(a, k, at)
		p := a.at(k, k)
		if p == 0 {
			continue
		}
		for i := k + 1; i < a.rows; i++ {
			f := a.at(i, k) / p
			a.set(i, k, f)
			for j := k + 1; j < a.cols; j++ {
				a.set(i, j, a.at(i, j)-f*a.at(k, j))
			}
		}
	}
	return pivots
}

func swapRows(a matrix, i, j int) {
	if i != j {
		for k := range a.cols {
			x, y := a.at(i, k), a.at(j, k)
			a.set(i, k, y)
			a.set(j, k, x)
		}
	}
}

// gauss solves a·X = b. It overwrites b with X and a with its factors, and reports whether a is
// regular.
func gauss(a, b matrix) bool {
	for i, at := range factorLU(a) {
		swapRows(b, i, at)
	}
	for i := range a.rows {
		if a.at(i, i) == 0 {
			return false
		}
	}
	substitute(SolveTriangularOpts{Unit: true}.of(a), b, true)
	substitute(SolveTriangularOpts{Upper: true}.of(a), b, false)
	return true
}

func luReference(_ *Attrs, in, out []*Array) {
	out[0].open()
	out[1].open()
	copy(out[0].Data, in[0].Data)
	if len(in[0].Data) == 0 {
		return
	}
	matrices(in[0].Shape, func(i int) {
		for k, at := range factorLU(out[0].matrixAt(i)) {
			out[1].vectorAt(i)[k] = float64(at)
		}
	})
}

func luCheck(_ *Attrs, in, out []*Array, i int) error {
	a, f, pivots := in[0].matrixAt(i).clone(), out[0].matrixAt(i), out[1].vectorAt(i)
	if !a.finite() {
		return nil
	}
	for k, p := range pivots {
		if p != math.Trunc(p) || p < float64(k) || p >= float64(a.rows) {
			return fmt.Errorf("pivot %d is %v, which is not in [%d, %d)", k, p, k, a.rows)
		}
		swapRows(a, k, int(p))
	}
	k := min(a.rows, a.cols)
	l, u := newMatrix(a.rows, k), newMatrix(k, a.cols)
	for i := range f.rows {
		for j, v := range f.row(i) {
			switch {
			case j >= i:
				u.set(i, j, v)
			case !(math.Abs(v) <= 1+8*epsilon):
				return fmt.Errorf("element [%d, %d] of L is %v: its magnitude must be at most 1, because the pivot must be the greatest of its column", i, j, v)
			default:
				l.set(i, j, v)
			}
		}
		if i < k {
			l.set(i, i, 1)
		}
	}
	return small("‖P·A - L·U‖", l.times(u).less(a), max(a.rows, a.cols), a.norm())
}

func solveReference(_ *Attrs, in, out []*Array) {
	out[0].open()
	if len(out[0].Data) == 0 {
		return
	}
	matrices(in[0].Shape, func(i int) {
		a, x := in[0].matrixAt(i), out[0].matrixAt(i)
		copy(x.v, in[1].matrixAt(i).v)
		if !gauss(a.clone(), x) {
			fill(x.v, math.NaN())
			if a.finite() && in[1].matrixAt(i).finite() && emptyLine(a) {
				fill(out[0].Mag[i*len(x.v):][:len(x.v)], 0)
			}
		}
	})
}

// emptyLine reports whether a row or a column consists of zeros. Every device then finds the
// matrix singular, whatever its rounding.
func emptyLine(a matrix) bool {
	nonzero := func(v float64) bool { return v != 0 }
	t := a.t()
	for i := range a.rows {
		if !slices.ContainsFunc(a.row(i), nonzero) || !slices.ContainsFunc(t.row(i), nonzero) {
			return true
		}
	}
	return false
}

func solveCheck(_ *Attrs, in, out []*Array, i int) error {
	if len(out[0].Data) == 0 {
		return nil
	}
	a, b, x := in[0].matrixAt(i), in[1].matrixAt(i), out[0].matrixAt(i)
	if !a.finite() || !b.finite() {
		return nil
	}
	f := a.clone()
	factorLU(f)
	least, most := math.Inf(1), 0.0
	for i := range f.rows {
		least, most = min(least, math.Abs(f.at(i, i))), max(most, math.Abs(f.at(i, i)))
	}
	if least <= doubtful*float64(a.rows)*most && !x.finite() {
		return nil // singular or nearly singular
	}
	if !x.finite() {
		return errNotFinite(0)
	}
	return small("‖A·X - B‖", a.times(x).less(b), a.rows, a.norm()*x.norm())
}

// errNotFinite is the error of results with NaN or infinities for a system that has a solution of
// norm size.
func errNotFinite(size float64) error {
	return fmt.Errorf("the result has NaN or infinities, but the system has a solution (of norm %.3g)", size)
}
