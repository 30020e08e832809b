package op

import (
	"math"
	"slices"

	"github.com/rayo-go/rayo/internal/fmt"
)

// This file has the common code of linear algebra. Results are checked by residuals, because the
// factors of a matrix are not unique in sign or order: the references mark such elements as
// undefined by an infinite Mag, and [Operation.CheckResults] compares products of the factors with
// the operands.

// float32s is the rule that all operands have type f32, with the given number of results of f32.
func float32s(results int) typeRule {
	return func(_ *Attrs, in []DType) ([]DType, error) {
		if _, err := same(in, func(d DType) bool { return d == F32 }); err != nil {
			return nil, err
		}
		return slices.Repeat([]DType{F32}, results), nil
	}
}

// matrixOf splits the shape of an array of matrices into its leading extents, rows and columns, or
// returns an ErrShape.
func matrixOf(s Shape) (lead Shape, rows, cols int, err error) {
	if len(s) < 2 {
		return nil, 0, 0, mismatch("%v is not a matrix: it needs two extents or more", s)
	}
	n := len(s) - 2
	return s[:n:n], s[n], s[n+1], nil
}

// squareOf is matrixOf for square matrices.
func squareOf(s Shape) (lead Shape, n int, err error) {
	lead, n, cols, err := matrixOf(s)
	if err == nil && n != cols {
		err = mismatch("%v is not square: %d rows and %d columns", s, n, cols)
	}
	return lead, n, err
}

// squareShape is the rule of one result of the shape of a square operand.
func squareShape(_ *Attrs, in []Shape) ([]Shape, error) {
	if _, _, err := squareOf(in[0]); err != nil {
		return nil, err
	}
	return []Shape{slices.Clone(in[0])}, nil
}

// systemShape is the rule of systems of equations: a [... n n] and b [... n k].
func systemShape(_ *Attrs, in []Shape) ([]Shape, error) {
	lead, n, err := squareOf(in[0])
	if err != nil {
		return nil, err
	}
	leadB, rows, _, err := matrixOf(in[1])
	switch {
	case err != nil:
		return nil, err
	case rows != n:
		return nil, mismatch("a is %v, so b needs %d rows: it is %v", in[0], n, in[1])
	case !lead.Equal(leadB):
		return nil, mismatch("a is %v and b is %v: their leading extents must be equal", in[0], in[1])
	}
	return []Shape{slices.Clone(in[1])}, nil
}

// matrix is one matrix of an array, in float64.
type matrix struct {
	rows, cols int
	v          []float64
}

func newMatrix(rows, cols int) matrix { return matrix{rows, cols, make([]float64, rows*cols)} }

// matrices calls f with the number of each matrix of an array of the given shape.
func matrices(s Shape, f func(i int)) {
	n, _ := Shape(s[:len(s)-2]).Size()
	for i := range n {
		f(i)
	}
}

// matrixAt returns matrix i of an array. It shares the array's memory.
func (x *Array) matrixAt(i int) matrix {
	n := len(x.Shape)
	rows, cols := x.Shape[n-2], x.Shape[n-1]
	return matrix{rows, cols, x.Data[i*rows*cols:][:rows*cols]}
}

// vectorAt returns row i of an array.
func (x *Array) vectorAt(i int) []float64 {
	n := x.Shape[len(x.Shape)-1]
	return x.Data[i*n:][:n]
}

// open marks every element of the array as undefined, so that [Operation.Check] accepts any value.
func (x *Array) open() {
	x.Mag = make([]float64, len(x.Data))
	for i := range x.Mag {
		x.Mag[i] = math.Inf(1)
	}
}

// fill sets all elements of v.
func fill(v []float64, to float64) {
	for i := range v {
		v[i] = to
	}
}

func (m matrix) at(i, j int) float64     { return m.v[i*m.cols+j] }
func (m matrix) set(i, j int, x float64) { m.v[i*m.cols+j] = x }
func (m matrix) row(i int) []float64     { return m.v[i*m.cols:][:m.cols] }
func (m matrix) clone() matrix           { return matrix{m.rows, m.cols, slices.Clone(m.v)} }

func (m matrix) t() matrix {
	x := newMatrix(m.cols, m.rows)
	for i := range m.rows {
		for j, v := range m.row(i) {
			x.set(j, i, v)
		}
	}
	return x
}

func (m matrix) times(o matrix) matrix {
	x := newMatrix(m.rows, o.cols)
	for i := range m.rows {
		y := x.row(i)
		for k, f := range m.row(i) {
			if f == 0 {
				continue
			}
			for j, v := range o.row(k) {
				y[j] += f * v
			}
		}
	}
	return x
}

// scaled returns the matrix with column j times by[j].
func (m matrix) scaled(by []float64) matrix {
	x := m.clone()
	for i := range x.rows {
		for j := range x.row(i) {
			x.row(i)[j] *= by[j]
		}
	}
	return x
}

func (m matrix) less(o matrix) matrix {
	x := m.clone()
	for i, v := range o.v {
		x.v[i] -= v
	}
	return x
}

func identityMatrix(n int) matrix {
	x := newMatrix(n, n)
	for i := range n {
		x.set(i, i, 1)
	}
	return x
}

// norm returns the Frobenius norm.
func (m matrix) norm() float64 {
	s := 0.0
	for _, v := range m.v {
		s = math.Hypot(s, v)
	}
	return s
}

// finite reports whether no element is NaN or infinite.
func (m matrix) finite() bool {
	return !slices.ContainsFunc(m.v, func(v float64) bool { return v-v != 0 })
}

// allNaN reports whether every element is NaN.
func (m matrix) allNaN() bool {
	return !slices.ContainsFunc(m.v, func(v float64) bool { return v == v })
}

// residuals is the largest residual that is allowed, in units of n·ε·size.
const residuals = 30

// small returns an error if diff, the difference between a matrix of order n and its expected
// value, is not small relative to size.
func small(what string, diff matrix, n int, size float64) error {
	bound := residuals * float64(max(n, 1)) * epsilon * size
	if d := diff.norm(); !(d <= bound+minNormal) {
		return fmt.Errorf("%s is %.3g; at most %.3g is allowed", what, d, bound)
	}
	return nil
}

// orthonormal returns an error if the columns of q are not orthonormal.
func orthonormal(what string, q matrix) error {
	return small("‖I - "+what+"ᵀ·"+what+"‖", q.t().times(q).less(identityMatrix(q.cols)), max(q.rows, q.cols), 1)
}

// A resultCheck compares the results with matrix i of the operands, and returns an error
// that names the property that does not hold.
type resultCheck func(a *Attrs, in, out []*Array, i int) error

// CheckResults checks properties of results that [Operation.Check] cannot check element by element,
// and returns an error if one does not hold. The product of the factors of a matrix A must equal A
// within 30·n·ε·‖A‖ in the Frobenius norm. Operations without such a property pass with any results.
func (o *Operation) CheckResults(a *Attrs, in, out []*Array) error {
	if o.def().check == nil || len(in[0].Data) == 0 {
		return nil
	}
	var err error
	matrices(in[0].Shape, func(i int) {
		if err == nil {
			if err = o.def().check(a, in, out, i); err != nil {
				err = fmt.Errorf("matrix %d of %v: %w", i, in[0].Shape, err)
			}
		}
	})
	return err
}

// CheckedAsWhole reports whether [Operation.CheckResults] has anything to check.
func (o *Operation) CheckedAsWhole() bool { return o.def().check != nil }
