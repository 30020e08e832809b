package batch

import (
	"math"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// Uniques are the results of [Batch.Unique]. They have room for n elements, the number of compared
// elements; Count is the number of valid elements in Values, First and Counts.
type Uniques struct {
	Values  Value // in rising order, 0 from the count on
	First   Value // i32 [n]: the index of the first of each group of equal elements, -1 from the count on
	Inverse Value // i32: for each element its index in Values
	Counts  Value // i32 [n]: number of equal elements, 0 from the count on
	Count   Value // i32 of shape []
}

// mostKeys is the maximum number of elements in the slices that Unique compares, because each
// element costs a sort.
const mostKeys = 1024

// Unique returns the distinct elements of x in ascending order, and their positions. x has n
// elements in any shape; Values is [n] of the same type, and Inverse has the shape of x. It is
// numpy.unique:
//
//	u := b.Unique(words)
//	same := b.Gather(u.Values, u.Inverse) // words
//
// With Along, it compares the n slices of x along one axis instead, lexicographically: Values has
// the shape of x, Inverse is [n]. Each element of a slice costs a sort.
//
// Each NaN is different from all others and comes after the numbers; -0 equals 0, and Values has
// the first of equal elements. Elements are of floating types, i32 or u32.
//
// Execute or Compile returns [op.ErrShape] for more than 2^31-1 elements or more than one axis,
// [device.ErrLimit] for slices of more than 1,024 elements, and [op.ErrUnsupported] for other
// types.
func (b *Batch) Unique(x Value, opts ...op.UniqueOpts) Uniques {
	n, ok := b.flatSize("unique", x)
	if !ok {
		return Uniques{}
	}
	o, err := op.OptionOf(opts)
	if err == nil && o.Along == (op.Along{}) {
		u := b.uniqueRows(b.Reshape(x, n, 1))
		u.Values = b.Reshape(u.Values, n)
		u.Inverse = b.Reshape(u.Inverse, x.Shape()...)
		return u
	}
	axis := 0
	if err == nil {
		axis, err = oneAxis(x, 0, []op.Along{o.Along})
	}
	if err != nil {
		b.refuse("unique", []Value{x}, "%w", err)
		return Uniques{}
	}
	front := b.MoveAxis(x, axis, 0)
	s := front.Shape()
	keys := extent(s[1:])
	if keys > mostKeys {
		b.refuse("unique", []Value{x}, "slices of %d elements: at most %d are supported: %w", keys, mostKeys, device.ErrLimit)
		return Uniques{}
	}
	u := b.uniqueRows(b.Reshape(front, s[0], keys))
	u.Values = b.MoveAxis(b.Reshape(u.Values, s...), 0, axis)
	return u
}

// uniqueRows returns the different rows of x [n m].
func (b *Batch) uniqueRows(x Value) Uniques {
	s := x.Shape()
	if b.err == nil {
		if _, err := op.Sort.Types(&op.Attrs{}, []op.DType{x.Type()}); err != nil {
			b.refuse("unique", []Value{x}, "%w", err)
		}
	}
	if b.err != nil {
		return Uniques{}
	}
	n, m := s[0], s[1]
	order, sorted := b.sortedRows(x)
	starts := b.NotEqual(sorted, b.predecessors(sorted))
	switch m {
	case 0: // the rows are equal
		starts = b.Equal(b.index(n), b.scalar(op.I32, 0))
	case 1:
		starts = b.Reshape(starts, n)
	default:
		starts = b.Any(starts, op.Axes(1))
	}
	at, count := b.ranks(starts)
	group := b.Sub(b.Cumsum(b.Cast(starts, op.I32)), b.scalar(op.I32, 1))
	// The first sorted row of each group, followed by n.
	begin := b.Concat(0, b.Scatter(b.filled(op.I32, float64(n), n), at, b.index(n)), b.filled(op.I32, float64(n), 1))
	return Uniques{
		Values:  b.Scatter(b.filled(x.Type(), 0, n, m), at, sorted),
		First:   b.Scatter(b.filled(op.I32, -1, n), at, order),
		Inverse: b.Scatter(b.filled(op.I32, 0, n), order, group),
		Counts:  b.Sub(b.Slice(begin, 0, 1, n+1, 1), b.Slice(begin, 0, 0, n, 1)),
		Count:   count,
	}
}

// predecessors returns for each row of x [n m] the row before it. For the first row it returns elements that differ from
// those of that row.
func (b *Batch) predecessors(x Value) Value {
	n := x.Shape()[0]
	if x.Type().Float() {
		return b.Pad(b.Slice(x, 0, 0, max(0, n-1), 1), 0, min(1, n), 0, float32(math.NaN()))
	}
	return b.Slice(b.Concat(0, b.Xor(b.Slice(x, 0, 0, min(1, n), 1), b.scalar(x.Type(), 1)), x), 0, 0, n, 1)
}

// sortedRows returns the rows of x [n m] in ascending order, and their indices in x.
func (b *Batch) sortedRows(x Value) (order, sorted Value) {
	n, m := x.Shape()[0], x.Shape()[1]
	if m == 1 { // if nothing reads the indices, the sort does not make them
		sorted, order = b.Sort(b.Reshape(x, n))
		return order, b.Reshape(sorted, n, 1)
	}
	order = b.index(n)
	for i := m - 1; i >= 0; i-- { // stable sorts: the last one decides first
		column := b.Reshape(b.Slice(x, 1, i, i+1, 1), n)
		if i < m-1 {
			column = b.Gather(column, order)
		}
		by := b.ArgSort(column)
		if i == m-1 {
			order = by
		} else {
			order = b.Gather(order, by)
		}
	}
	return order, b.Gather(x, order)
}
