package op

import (
	"math"

	"github.com/rayo-go/rayo/internal/irhook"
)

// defSolveTriangular solves systems whose matrix is triangular. [SolveTriangularOpts] are its
// parameters.
var defSolveTriangular = Operation{define: func() *definition {
	return add(&definition{name: "solve_triangular", class: Shaped, selfTest: &irhook.SelfTest{Shapes: [][]int{{2, 5, 5}, {2, 5, 3}}, Dominant: true}, doc: "the X with op(A)·X = B for triangular A, where op(A) is A or Aᵀ",
		formula: "op(A)·X = B", inputs: []string{"a", "b"}, arity: [2]int{2, 2}, options: "SolveTriangularOpts",
		shapes: "a [... n n] and b [... n k] with the same leading extents; gives [... n k]", types: float32s(1), shape: systemShape,
		ref: triangularReference, check: triangularCheck,
		special: "The other triangle of a is not read, and with option Unit the diagonal is not read either. A zero on the diagonal gives infinities or NaN. The residual ‖op(A)·X - B‖ is at most 30·n·ε·‖A‖·‖X‖.",
		flops:   func(_ *Attrs, in, _ []Shape) float64 { return elements(in[1]) * float64(in[0][len(in[0])-1]) }})
}}

// SolveTriangularOpts are the parameters of [SolveTriangular].
type SolveTriangularOpts struct {
	Upper bool // A is upper triangular; otherwise it is lower triangular
	Trans bool // solve Aᵀ·X = B
	Unit  bool // the diagonal of A is taken as ones and is not read
}

// Attrs converts the options to parameters.
func (o SolveTriangularOpts) Attrs() Attrs {
	return Attrs{I: [8]int{integer(o.Upper), integer(o.Trans), integer(o.Unit)}}
}

// SolveTriangularOptsOf returns the options from which [SolveTriangularOpts.Attrs] made a.
func SolveTriangularOptsOf(a *Attrs) SolveTriangularOpts {
	return SolveTriangularOpts{a.I[0] != 0, a.I[1] != 0, a.I[2] != 0}
}

// of returns op(A), with zeros in the triangle that is not read, and ones on the diagonal with Unit.
func (o SolveTriangularOpts) of(a matrix) matrix {
	t := newMatrix(a.rows, a.rows)
	for i := range a.rows {
		for j := range a.rows {
			switch v := a.at(i, j); {
			case i == j && o.Unit:
				t.set(i, i, 1)
			case i == j, (j > i) == o.Upper:
				t.set(i, j, v)
			}
		}
	}
	if o.Trans {
		return t.t()
	}
	return t
}

// substitute solves t·X = B for a triangular t; X overwrites x.
func substitute(t, x matrix, lower bool) {
	for k := range t.rows {
		i := k
		if !lower {
			i = t.rows - 1 - k
		}
		y := x.row(i)
		for j, f := range t.row(i) {
			if j == i || f == 0 {
				continue
			}
			for c, v := range x.row(j) {
				y[c] -= f * v
			}
		}
		for c := range y {
			y[c] /= t.at(i, i)
		}
	}
}

func triangularReference(a *Attrs, in, out []*Array) {
	out[0].open()
	if len(out[0].Data) == 0 {
		return
	}
	o := SolveTriangularOptsOf(a)
	matrices(in[0].Shape, func(i int) {
		x := out[0].matrixAt(i)
		copy(x.v, in[1].matrixAt(i).v)
		substitute(o.of(in[0].matrixAt(i)), x, o.Upper == o.Trans)
	})
}

func triangularCheck(a *Attrs, in, out []*Array, i int) error {
	if len(out[0].Data) == 0 {
		return nil
	}
	t := SolveTriangularOptsOf(a).of(in[0].matrixAt(i))
	return solves(t, in[1].matrixAt(i), out[0].matrixAt(i))
}

// solves returns an error if x is no solution of a·X = b. It returns nil if the system has no
// solution, or a solution beyond the range of float32.
func solves(a, b, x matrix) error {
	for i := range a.rows {
		if a.rows > 0 && a.at(i, i) == 0 {
			return nil
		}
	}
	if !a.finite() || !b.finite() {
		return nil
	}
	if !x.finite() {
		want := b.clone()
		if !gauss(a.clone(), want) || want.norm() > 0x1p100 {
			return nil
		}
		return errNotFinite(want.norm())
	}
	return small("‖A·X - B‖", a.times(x).less(b), a.rows, a.norm()*max(x.norm(), math.SmallestNonzeroFloat32))
}
