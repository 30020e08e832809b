package batch

import (
	"fmt"
	"slices"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// Tensordot multiplies x and y and sums over pairs of axes: axis xAxes[i] of x and axis
// yAxes[i] of y, which have the same extent. The result has the other axes of x, then those
// of y. Axes below 0 count from the end. Without axes the result holds the products of all
// pairs of elements.
//
//	b.Tensordot(x, y, []int{-1}, []int{0}) // a product of matrices
//
// Execute or Compile returns [op.ErrShape] for other extents, or an axis twice.
func (b *Batch) Tensordot(x, y Value, xAxes, yAxes []int) Value {
	e := &einsum{b: b}
	err := b.needs(x, 0)
	if err == nil {
		err = b.needs(y, 0)
	}
	if err == nil && len(xAxes) != len(yAxes) {
		err = fmt.Errorf("%d axes of x and %d of y: expected the same number: %w", len(xAxes), len(yAxes), device.ErrShape)
	}
	if err != nil {
		return b.fail(fmt.Errorf("tensordot: %w", err))
	}
	terms := [2]term{{v: x}, {v: y}}
	for k := range terms {
		for i, d := range terms[k].v.Shape() {
			l := label(k*op.MaxRank + i)
			terms[k].labels = append(terms[k].labels, l)
			e.extents[l] = d
		}
	}
	for i := range xAxes {
		j, err := x.axis(xAxes[i])
		if err == nil {
			k, err2 := y.axis(yAxes[i])
			if err = err2; err == nil {
				err = terms[1].share(&terms[0], k, j)
			}
		}
		if err != nil {
			return b.fail(fmt.Errorf("tensordot: %w", err))
		}
	}
	for k := range terms {
		for _, l := range terms[k].labels {
			if !slices.Contains(terms[1-k].labels, l) {
				e.out = append(e.out, l)
			}
		}
	}
	return e.pair(terms[0], terms[1], labelSet(e.out)).v
}

// share gives axis k of t the label of axis j of x.
func (t *term) share(x *term, k, j int) error {
	if slices.Contains(t.labels, x.labels[j]) || t.labels[k] < op.MaxRank {
		return fmt.Errorf("axis %d of x or axis %d of y is given twice: %w", j, k, device.ErrShape)
	}
	if m, n := x.v.Shape()[j], t.v.Shape()[k]; m != n {
		return fmt.Errorf("shapes %v and %v: axis %d of x has %d elements, but axis %d of y has %d: %w", x.v.Shape(), t.v.Shape(), j, m, k, n, device.ErrShape)
	}
	t.labels[k] = x.labels[j]
	return nil
}

// Outer returns the matrix [m n] of the products of all m elements of x with all n of
// y.
func (b *Batch) Outer(x, y Value) Value {
	return b.Mul(b.Reshape(x, -1, 1), b.Reshape(y, 1, -1))
}

// VecDot returns the scalar products of the vectors of x and y along an axis, which has the same
// extent in both. The other axes broadcast. An axis below 0 counts from the end of each operand.
//
// Execute or Compile returns [op.ErrShape] for other extents.
func (b *Batch) VecDot(x, y Value, axis int) Value {
	return b.Einsum("...i,...i->...", b.MoveAxis(x, axis, -1), b.MoveAxis(y, axis, -1))
}

// Kron returns the Kronecker product: it replaces each element of x by its product with all
// of y. If one shape is shorter, ones are put before it.
//
// Execute or Compile returns [op.ErrShape] for an operand with more than four axes.
func (b *Batch) Kron(x, y Value) Value {
	err := b.needs(x, 0)
	if err == nil {
		err = b.needs(y, 0)
	}
	if err == nil && max(len(x.Shape()), len(y.Shape())) > op.MaxRank/2 {
		err = fmt.Errorf("%v and %v: the result would have more than %d extents: %w", x.Shape(), y.Shape(), op.MaxRank/2, device.ErrShape)
	}
	if err != nil {
		return b.fail(fmt.Errorf("kron: %w", err))
	}
	rank := max(len(x.Shape()), len(y.Shape()))
	xs := append(ones(rank-len(x.Shape())), x.Shape()...)
	ys := append(ones(rank-len(y.Shape())), y.Shape()...)
	xs, ys = alternated(xs, 0), alternated(ys, 1)
	z := b.Mul(b.Reshape(x, xs...), b.Reshape(y, ys...))
	if b.err != nil {
		return Value{}
	}
	s := make([]int, rank)
	for i := range s {
		s[i] = z.Shape()[2*i] * z.Shape()[2*i+1]
	}
	return b.Reshape(z, s...)
}

// alternated returns the extents of s at every second position, from the given one on, with ones
// between them.
func alternated(s []int, from int) []int {
	a := ones(2 * len(s))
	for i, d := range s {
		a[2*i+from] = d
	}
	return a
}

// Cross returns the cross products of the vectors of three elements of x and y along an axis. The
// other axes broadcast. An axis below 0 counts from the end of each operand.
//
// Execute or Compile returns [op.ErrShape] for another extent.
func (b *Batch) Cross(x, y Value, axis int) Value {
	for _, v := range []Value{x, y} {
		err := b.needs(v, 1)
		i := 0
		if err == nil {
			i, err = v.axis(axis)
		}
		if err == nil && v.Shape()[i] != 3 {
			err = fmt.Errorf("%v has %d elements along axis %d: expected three: %w", v.Shape(), v.Shape()[i], i, device.ErrShape)
		}
		if err != nil {
			return b.fail(fmt.Errorf("cross: %w", err))
		}
	}
	xs, ys := b.Split(x, axis, 1, 1, 1), b.Split(y, axis, 1, 1, 1)
	parts := make([]Value, 3)
	for i := range parts {
		j, k := (i+1)%3, (i+2)%3
		parts[i] = b.Sub(b.Mul(xs[j], ys[k]), b.Mul(xs[k], ys[j]))
	}
	return b.Concat(axis, parts...)
}
