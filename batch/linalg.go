package batch

import (
	"github.com/rayo-go/rayo/op"
)

// SolveTriangular returns the X with op(A)·X = B for triangular matrices a [... n n] and
// right-hand sides b [... n k] or [n], where op(A) is A, or Aᵀ with Trans. Leading extents
// broadcast. The other triangle of a is not read.
//
//	l := b.Cholesky(a)
//	x := b.SolveTriangular(l, b.SolveTriangular(l, y), op.SolveTriangularOpts{Trans: true}) // a·x = y
//
// A zero on the diagonal gives infinities or NaN. docs/OPS.md#solve_triangular.
func (b *Batch) SolveTriangular(a, y Value, opts ...op.SolveTriangularOpts) Value {
	return b.system(op.SolveTriangular, op.AttrsOf(opts), a, y)
}

// Solve returns the X with A·X = B for square matrices a [... n n] and right-hand sides b
// [... n k] or [n], by LU with partial pivoting. Leading extents broadcast. A singular matrix
// gives NaN.
//
//	x := b.Solve(a, y) // a [3 3], y [3]
//
// docs/OPS.md#solve.
func (b *Batch) Solve(a, y Value) Value { return b.system(op.Solve, op.Attrs{}, a, y) }

// system records an operation on matrices and right-hand sides whose leading extents
// broadcast. A vector is one column.
func (b *Batch) system(o *op.Operation, attrs op.Attrs, a, y Value) Value {
	if b.unusable() {
		return Value{}
	}
	column := len(y.Shape()) == 1
	if column {
		y = b.Reshape(y, y.Shape()[0], 1)
	}
	s, t := a.Shape(), y.Shape()
	if len(s) < 2 || len(t) < 2 {
		return b.apply(o, attrs, a, y) // which says what is wrong
	}
	a, y, err := b.alike(a, y)
	if err != nil {
		return b.failOp(o, err, []Value{a, y})
	}
	x := b.apply(o, attrs, a, y)
	if r := x.Shape(); column && len(r) > 1 {
		x = b.Reshape(x, r[:len(r)-1]...)
	}
	return x
}

// alike returns matrices with the leading extents of both.
func (b *Batch) alike(x, y Value) (Value, Value, error) {
	s, t := x.Shape(), y.Shape()
	n, m := len(s)-2, len(t)-2
	lead, err := op.Broadcast(s[:n:n], t[:m:m])
	if err != nil {
		return x, y, err
	}
	over := func(v Value, s, last op.Shape) Value {
		if to := append(append(op.Shape{}, lead...), last...); !to.Equal(s) {
			return b.Expand(v, to...)
		}
		return v
	}
	return over(x, s, s[n:]), over(y, t, t[m:]), nil
}

// LU returns the factors of P·A = L·U with partial pivoting, for matrices a [... m n]: L and
// U in one value of the shape of a, and pivots [... min(m, n)] of i32. L is below the
// diagonal, where its ones are left out. Row i was exchanged with row pivots[i], one after
// the other. docs/OPS.md#lu.
func (b *Batch) LU(a Value) (lu, pivots Value) {
	lu = b.apply(op.LU, op.Attrs{}, a)
	return lu, b.second(lu)
}

// QR returns the factors of A = Q·R for matrices a [... m n]: Q [... m k] with orthonormal
// columns and the upper triangular R [... k n], where k is min(m, n). Signs are not defined.
// docs/OPS.md#qr.
func (b *Batch) QR(a Value) (q, r Value) {
	q = b.apply(op.QR, op.Attrs{}, a)
	return q, b.second(q)
}

// Eigh returns the eigenvalues w [... n] of symmetric matrices a [... n n], which rise, and
// their eigenvectors V [... n n], one a column: A·V = V·diag(w). It reads the lower triangle
// of a alone. Signs are not defined. docs/OPS.md#eigh.
func (b *Batch) Eigh(a Value) (w, v Value) {
	w = b.apply(op.Eigh, op.Attrs{}, a)
	return w, b.second(w)
}

// SVD returns the singular value decomposition A = U·diag(s)·Vᵀ of matrices a [... m n]: U
// [... m k], s [... k], which falls, and Vᵀ [... k n], where k is min(m, n). Signs are not
// defined. docs/OPS.md#svd.
func (b *Batch) SVD(a Value) (u, s, vt Value) {
	u = b.apply(op.SVD, op.Attrs{}, a)
	return u, b.result(u, 1), b.result(u, 2)
}
