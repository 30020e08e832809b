package batch

import (
	"fmt"
	"math"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// The methods of this file make arrays whose elements are functions of their indices. For an array
// of zeros or of another constant, use [Batch.Const].

// Eye returns a matrix of f32 with ones where the column is row + offset, and zeros
// elsewhere.
//
// Execute or Compile returns [op.ErrShape] for extents below 0.
func (b *Batch) Eye(rows, cols, offset int) Value {
	d, k := b.diagonals(rows, cols, offset)
	return b.Cast(b.Equal(d, k), op.F32)
}

// Tri returns a matrix of f32 with ones where the column is at most row + offset, and zeros
// elsewhere.
//
// Execute or Compile returns [op.ErrShape] for extents below 0.
func (b *Batch) Tri(rows, cols, offset int) Value {
	d, k := b.diagonals(rows, cols, offset)
	return b.Cast(b.LessEqual(d, k), op.F32)
}

// Tril returns x [... m n] with zeros where the column is greater than row + offset. With
// an offset of 0 it keeps the lower triangles.
//
// Execute or Compile returns [op.ErrShape] for fewer than two axes.
func (b *Batch) Tril(x Value, offset int) Value { return b.triangle(x, offset, (*Batch).LessEqual) }

// Triu returns x [... m n] with zeros where the column is less than row + offset. With an
// offset of 0 it keeps the upper triangles.
//
// Execute or Compile returns [op.ErrShape] for fewer than two axes.
func (b *Batch) Triu(x Value, offset int) Value { return b.triangle(x, offset, (*Batch).GreaterEqual) }

// triangle returns the elements of x on the diagonals for which the relation to the offset holds.
func (b *Batch) triangle(x Value, offset int, keeps func(b *Batch, d, k Value) Value) Value {
	rows, cols, err := b.matrix(x)
	if err != nil {
		return b.fail(fmt.Errorf("triangle: %w", err))
	}
	d, k := b.diagonals(rows, cols, offset)
	return b.Where(keeps(b, d, k), x, b.scalar(x.Type(), 0))
}

// DiagEmbed returns square matrices [... n+k n+k] with the rows of x [... n] on a diagonal
// and zeros elsewhere. On the diagonal the column is offset larger than the row; k is the
// magnitude of offset.
//
// Execute or Compile returns [op.ErrShape] for a scalar, or an offset that makes the extents
// overflow.
func (b *Batch) DiagEmbed(x Value, offset int) Value {
	if err := b.needs(x, 1); err != nil {
		return b.fail(fmt.Errorf("diag_embed: %w", err))
	}
	size := offset
	if offset < 0 {
		size = -offset
	}
	if size < 0 || size > math.MaxInt32 {
		return b.fail(fmt.Errorf("diag_embed: the matrix for offset %d is too large: %w", offset, device.ErrShape))
	}
	if size > 0 {
		x = b.Pad(x, -1, 0, size, 0)
	}
	if b.err != nil {
		return Value{}
	}
	// Rows count the elements above the main diagonal, columns those below it.
	n, axis := x.Shape()[len(x.Shape())-1], -1
	if offset < 0 {
		axis = -2
	}
	d, k := b.diagonals(n, n, offset)
	return b.Where(b.Equal(d, k), b.Unsqueeze(x, axis), b.scalar(x.Type(), 0))
}

// Linspace returns n numbers of f32 at equal distances. The first is start and the last is
// exactly stop. A single number is start. start and stop are single elements of f32.
//
// Execute or Compile returns [op.ErrShape] for a number n below 0 or another shape, and
// [op.ErrUnsupported] for another type.
func (b *Batch) Linspace(start, stop Value, n int) Value {
	i := b.index(n)
	last := max(n-1, 1)
	step := b.Div(b.Sub(stop, start), b.scalar(op.F32, float64(last)))
	x := b.Add(start, b.Mul(b.Cast(i, op.F32), step))
	return b.Where(b.Equal(i, b.whole(last)), stop, x)
}

// OneHot returns an array of f32 with a new axis of depth elements. Along this axis, the
// element whose index is the id is one, and the others are zero. An id outside [0, depth)
// gives zeros only. axis is the place of the new axis in the result; below 0 it counts from
// the end. The ids are i32 or u32.
//
// Execute or Compile returns [op.ErrShape] for another axis or a depth below 0, and
// [op.ErrUnsupported] for another type of ids.
func (b *Batch) OneHot(ids Value, depth, axis int) Value {
	column := b.Unsqueeze(ids, axis)
	i, err := column.axis(axis)
	if b.err != nil || err != nil {
		return Value{}
	}
	s := ones(len(column.Shape()))
	s[i] = depth
	at := b.Cast(b.Reshape(b.index(depth), s...), ids.Type())
	return b.Cast(b.Equal(column, at), op.F32)
}

// Meshgrid returns one array of shape [n0 n1 ...] for each of the vectors of n0, n1, ...
// elements. Array i holds vector i along axis i and repeats it along the other axes, as
// NumPy's meshgrid does with indexing="ij". SwapAxes(0, 1) of them gives "xy". The arrays
// are views.
//
// Execute or Compile returns [op.ErrShape] for a value of another rank.
func (b *Batch) Meshgrid(xs ...Value) []Value {
	grid, s := make([]Value, len(xs)), make([]int, len(xs))
	for i, x := range xs {
		if b.err == nil && b.own(x) && len(x.Shape()) != 1 {
			b.fail(fmt.Errorf("meshgrid: operand %d has shape %v: expected one extent: %w", i, x.Shape(), device.ErrShape))
		}
		if err := b.needs(x, 1); err != nil {
			b.fail(fmt.Errorf("meshgrid: operand %d: %w", i, err))
			return grid
		}
		s[i] = x.Shape()[0]
	}
	for i, x := range xs {
		at := ones(len(xs))
		at[i] = s[i]
		grid[i] = b.Expand(b.Reshape(x, at...), s...)
	}
	return grid
}

// diagonals returns, for each element of a matrix, column minus row, and the offset to compare it
// with, both of i32.
func (b *Batch) diagonals(rows, cols, offset int) (d, k Value) {
	d = b.Sub(b.Reshape(b.index(cols), 1, cols), b.Reshape(b.index(rows), rows, 1))
	// An offset beyond the matrix has the same effect as one at its end.
	return d, b.whole(min(max(offset, -rows), cols))
}

// index returns the numbers 0 to n-1 of i32.
func (b *Batch) index(n int) Value {
	if b.err == nil && int64(n) > math.MaxInt32 {
		return b.fail(fmt.Errorf("%d numbers: at most %d are supported: %w", n, math.MaxInt32, device.ErrShape))
	}
	return b.Cast(b.Iota(b.word(0), n), op.I32)
}

// ones returns n extents of 1.
func ones(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = 1
	}
	return s
}

// needs returns an error if x is not part of this recording or has fewer than rank extents.
func (b *Batch) needs(x Value, rank int) error {
	switch {
	case b.unusable():
		return b.err
	case !b.own(x):
		return b.foreign(x)
	case len(x.Shape()) < rank:
		return fmt.Errorf("%v has %d extents: expected %d or more: %w", x.Shape(), len(x.Shape()), rank, device.ErrShape)
	}
	return nil
}

// matrix returns the last two extents of x.
func (b *Batch) matrix(x Value) (rows, cols int, err error) {
	if err := b.needs(x, 2); err != nil {
		return 0, 0, err
	}
	s := x.Shape()
	return s[len(s)-2], s[len(s)-1], nil
}
