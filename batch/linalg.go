package batch

import (
	"github.com/rayo-go/rayo/op"
)

// SolveTriangular returns the X with op(A)·X = Y for triangular matrices a [... n n] and
// right-hand sides y [... n k] or [n], where op(A) is A, or Aᵀ with Trans. Leading extents
// broadcast. The other triangle of a is not read.
//
//	l := b.Cholesky(a)
//	x := b.SolveTriangular(l, b.SolveTriangular(l, y), op.SolveTriangularOpts{Trans: true}) // a·x = y
//
// A zero on the diagonal gives infinities or NaN. See docs/OPS.md#solve_triangular.
func (b *Batch) SolveTriangular(a, y Value, opts ...op.SolveTriangularOpts) Value {
	return b.system(op.SolveTriangular, op.AttrsOf(opts), a, y)
}

// Solve returns the X with A·X = Y for square matrices a [... n n] and right-hand sides y
// [... n k] or [n], by LU with partial pivoting. Leading extents broadcast. A singular matrix
// gives NaN.
//
//	x := b.Solve(a, y) // a [3 3], y [3]
//
// See docs/OPS.md#solve.
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
		return b.apply(o, attrs, a, y) // records the error
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

// alike broadcasts the leading extents of two matrices.
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

// LU returns the factors of P·A = L·U with partial pivoting, for matrices a [... m n]. lu
// has the shape of a: U is on and above the diagonal, and L is below it, without its
// diagonal of ones. pivots [... min(m, n)], of i32, are the exchanges of rows in order: row
// i was exchanged with row pivots[i]. See docs/OPS.md#lu.
func (b *Batch) LU(a Value) (lu, pivots Value) {
	lu = b.apply(op.LU, op.Attrs{}, a)
	return lu, b.second(lu)
}

// QR returns the factors of A = Q·R for matrices a [... m n]: Q [... m k] has orthonormal
// columns, and R [... k n] is upper triangular, where k is min(m, n). The signs of columns
// of Q and rows of R are not defined. See docs/OPS.md#qr.
func (b *Batch) QR(a Value) (q, r Value) {
	q = b.apply(op.QR, op.Attrs{}, a)
	return q, b.second(q)
}

// Eigh returns the eigenvalues w [... n] of symmetric matrices a [... n n] in ascending
// order, and their eigenvectors as the columns of v [... n n]: A·V = V·diag(w). It reads
// only the lower triangle of a. The signs of eigenvectors are not defined.
// See docs/OPS.md#eigh.
func (b *Batch) Eigh(a Value) (w, v Value) {
	w = b.apply(op.Eigh, op.Attrs{}, a)
	return w, b.second(w)
}

// SVD returns the reduced singular value decomposition A = U·diag(s)·Vᵀ of matrices a [...
// m n]: U [... m k], the singular values s [... k] in descending order, and Vᵀ [... k n],
// where k is min(m, n). The signs of singular vectors are not defined. See docs/OPS.md#svd.
func (b *Batch) SVD(a Value) (u, s, vt Value) {
	u = b.apply(op.SVD, op.Attrs{}, a)
	return u, b.result(u, 1), b.result(u, 2)
}

// Inv returns the inverses of square matrices a [... n n], by [Batch.Solve] with the
// identity. A singular matrix gives NaN. To solve equations, call Solve: it takes a third
// of the time and is more accurate.
func (b *Batch) Inv(a Value) Value {
	n, ok := b.square(a)
	if !ok {
		return Value{}
	}
	return b.Solve(a, b.Eye(n, n, 0))
}

// Det returns the determinants [...] of square matrices a [... n n], as the product of the
// diagonal of U in P·A = L·U. A singular matrix gives 0, and a matrix without elements 1. A
// product that leaves the range of float32 becomes infinite or 0; [Batch.SlogDet] avoids
// that.
func (b *Batch) Det(a Value) Value {
	diagonal, parity := b.eliminated(a)
	return b.Mul(parity, b.multiplied(diagonal))
}

// SlogDet returns the signs of the determinants of square matrices a [... n n], and the
// logarithms of their magnitudes: two values [...] with det = sign·exp(log). A singular
// matrix has the sign 0 and the logarithm -Inf.
func (b *Batch) SlogDet(a Value) (sign, log Value) {
	diagonal, parity := b.eliminated(a)
	sign = b.Mul(parity, b.multiplied(b.Sign(diagonal)))
	return sign, b.Sum(b.Log(b.Abs(diagonal)), op.Axes(-1))
}

// Lstsq returns the X that minimises ‖A·X - Y‖, for matrices a [... m n] of full rank and
// right-hand sides y [... m k] or [m], by QR. If m < n, it returns the solution with the smallest
// norm. Leading extents broadcast. A matrix of lower rank gives infinities, NaN or large numbers;
// b.MatMul(b.Pinv(a), y) solves these too.
func (b *Batch) Lstsq(a, y Value) Value {
	s := a.Shape()
	if b.unusable() || len(s) < 2 {
		return b.apply(op.QR, op.Attrs{}, a) // which records the error
	}
	column := len(y.Shape()) == 1
	if column {
		y = b.Reshape(y, y.Shape()[0], 1)
	}
	if len(y.Shape()) < 2 {
		return b.apply(op.Solve, op.Attrs{}, a, y)
	}
	a, y, err := b.alike(a, y)
	if err != nil {
		return b.failOp(op.QR, err, []Value{a, y})
	}
	var x Value
	if m, n := s[len(s)-2], s[len(s)-1]; m >= n {
		q, r := b.QR(a)
		x = b.SolveTriangular(r, b.MatMul(q, y, None, op.MatMulOpts{TransA: true}), op.SolveTriangularOpts{Upper: true})
	} else {
		q, r := b.QR(b.Transpose(a))
		x = b.MatMul(q, b.SolveTriangular(r, y, op.SolveTriangularOpts{Upper: true, Trans: true}), None)
	}
	if t := x.Shape(); column && len(t) > 1 {
		x = b.Reshape(x, t[:len(t)-1]...)
	}
	return x
}

// Pinv returns the pseudoinverses [... n m] of matrices a [... m n], by [Batch.SVD]. It
// treats singular values of at most max(m, n)·ε times the greatest as 0, with ε = 2⁻²³.
func (b *Batch) Pinv(a Value) Value {
	u, s, vt := b.SVD(a)
	counts := b.significant(a, s)
	if b.unusable() {
		return Value{}
	}
	inverse := b.Where(counts, b.Div(b.Const(1), s), b.Const(0))
	k := append(append(op.Shape{}, s.Shape()...), 1)
	return b.MatMul(b.Mul(vt, b.Reshape(inverse, k...)), u, None, op.MatMulOpts{TransA: true, TransB: true})
}

// MatrixRank returns the ranks [...] of matrices a [... m n], of i32: the number of
// singular values above max(m, n)·ε times the greatest, with ε = 2⁻²³. A matrix with NaN
// has rank 0.
func (b *Batch) MatrixRank(a Value) Value {
	_, s, _ := b.SVD(a)
	counts := b.significant(a, s)
	return b.Cast(b.Sum(b.Cast(counts, op.F32), op.Axes(-1)), op.I32)
}

// significant returns which singular values s of a are not treated as 0.
func (b *Batch) significant(a, s Value) Value {
	if b.unusable() {
		return Value{}
	}
	t := a.Shape()
	tolerance := float32(max(t[len(t)-2], t[len(t)-1])) * 0x1p-23
	return b.Greater(s, b.Scale(b.Slice(s, -1, 0, 1, 1), tolerance))
}

// MatrixPower returns the powers of square matrices a [... n n], by repeated squaring. A
// power of 0 gives the identity. A power below 0 gives the power of the inverse.
func (b *Batch) MatrixPower(a Value, power int) Value {
	n, ok := b.square(a)
	if !ok {
		return Value{}
	}
	p := uint(power)
	if power < 0 {
		a, p = b.Inv(a), -p
	}
	var y Value
	for ; p > 0; p >>= 1 {
		switch {
		case p&1 == 0:
		case y == Value{}:
			y = a
		default:
			y = b.MatMul(y, a, None)
		}
		if p > 1 {
			a = b.MatMul(a, a, None)
		}
	}
	if y == (Value{}) && b.err == nil {
		y = b.Expand(b.Eye(n, n, 0), a.Shape()...)
	}
	return y
}

// square returns the order of square matrices, or fails.
func (b *Batch) square(a Value) (n int, ok bool) {
	if b.unusable() {
		return 0, false
	}
	if s := a.Shape(); b.own(a) && len(s) >= 2 && s[len(s)-1] == s[len(s)-2] {
		return s[len(s)-1], true
	}
	b.apply(op.Cholesky, op.Attrs{}, a) // records the error
	return 0, false
}

// eliminated returns the diagonal of U [... n] for square matrices, and the sign of the
// exchanges of rows [...].
func (b *Batch) eliminated(a Value) (diagonal, parity Value) {
	n, ok := b.square(a)
	if !ok {
		return Value{}, Value{}
	}
	s := a.Shape()
	lu, pivots := b.LU(a)
	flat := append(append(op.Shape{}, s[:len(s)-2]...), n*n)
	diagonal = b.Slice(b.Reshape(lu, flat...), -1, 0, op.End, n+1)
	stays := b.Cast(b.Iota(b.word(0), n), op.I32)
	exchanges := b.Sum(b.Cast(b.NotEqual(pivots, stays), op.F32), op.Axes(-1))
	odd := b.Sub(exchanges, b.Scale(b.Floor(b.Scale(exchanges, 0.5)), 2))
	return diagonal, b.AddScalar(b.Scale(odd, -2), 1)
}

// multiplied returns the products of rows [... n]. It multiplies the halves of rows repeatedly.
func (b *Batch) multiplied(x Value) Value {
	for b.err == nil {
		s := x.Shape()
		n := s[len(s)-1]
		if n == 1 {
			return b.Reshape(x, s[:len(s)-1]...)
		}
		if n%2 == 1 || n == 0 {
			x = b.Pad(x, -1, 0, 1, 1)
		}
		if n > 0 {
			x = b.Mul(b.Slice(x, -1, 0, op.End, 2), b.Slice(x, -1, 1, op.End, 2))
		}
	}
	return Value{}
}
