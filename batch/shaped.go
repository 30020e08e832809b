package batch

import (
	"slices"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// TopK returns the k greatest elements of each row of x [... n], greatest
// first, and the columns where they are, of i32: two values [... k]. With
// Smallest it returns the least elements, least first; Along names another axis
// than the last, which has k elements in the results:
//
//	values, at := b.TopK(distances, 5, op.TopOpts{Smallest: true, Along: op.Axes(0)})
//
// NaN counts as the greatest; of equal elements the one with the lower column comes first. x is of
// a floating type, i32 or u32. The least elements, and elements of integer types, are found with
// [Batch.Sort], which is slower.
//
// Execute or Compile returns [op.ErrShape] for a k outside [0, n] and several axes, and
// [op.ErrUnsupported] for other types. See docs/OPS.md#topk.
func (b *Batch) TopK(x Value, k int, opts ...op.TopOpts) (values, indices Value) {
	if !b.takes("topk", x) {
		return Value{}, Value{}
	}
	o, err := op.OptionOf(opts)
	rank := len(x.Shape())
	axis := rank - 1
	if err == nil && o.Along != (op.Along{}) {
		var axes []int
		if axes, _, err = o.Along.Of(rank); err == nil && len(axes) != 1 {
			return b.refuse("topk", []Value{x}, "%d axes, not one: %w", len(axes), device.ErrShape), Value{}
		} else if err == nil {
			axis = axes[0]
		}
	}
	if err != nil {
		return b.refuse("topk", []Value{x}, "%w", err), Value{}
	}
	if axis >= 0 && axis != rank-1 {
		x = b.MoveAxis(x, axis, -1)
	}
	values, indices = b.chosen(x, k, o.Smallest)
	if axis >= 0 && axis != rank-1 && b.err == nil {
		values, indices = b.MoveAxis(values, -1, axis), b.MoveAxis(indices, -1, axis)
	}
	return values, indices
}

// chosen returns the k greatest or least elements of each row of x, and their columns.
func (b *Batch) chosen(x Value, k int, least bool) (values, indices Value) {
	s := slices.Clone(x.Shape())
	integers := x.Type() == op.I32 || x.Type() == op.U32
	if !least && !integers || len(s) == 0 || k < 0 || k > s[len(s)-1] {
		values = b.apply(op.TopK, op.TopKOpts{K: k}.Attrs(), x) // records the error
		return values, b.second(values)
	}
	values, indices = b.Sort(x, op.SortOpts{Descending: !least})
	return b.Slice(values, -1, 0, k, 1), b.Slice(indices, -1, 0, k, 1)
}

// Sort returns the elements of each row of x [... n] in ascending order, and their indices
// in the row, of i32. Both results have the shape of x. With Descending the greatest
// element comes first. With Along, the elements along these axes form one row:
//
//	values, order := b.Sort(x, op.SortOpts{Descending: true, Along: op.Axes(0)})
//
// The sort is stable in both orders. NaN counts as the greatest number, and -0 equals 0.
// Indices take two thirds of the time on the CPU. Execute(ctx, values) and Compile(ctx, values)
// do not compute them. See docs/OPS.md#sort.
func (b *Batch) Sort(x Value, opts ...op.SortOpts) (values, indices Value) {
	o, err := op.OptionOf(opts)
	var along []op.Along
	if o.Along != (op.Along{}) {
		along = append(along, o.Along)
	}
	a := o.Attrs()
	if err != nil {
		a = op.AttrsOf(opts) // reports the error
	}
	rows, back := b.asRows(op.Sort, along, x)
	values = b.apply(op.Sort, a, rows)
	return back(values), back(b.second(values))
}

// ArgSort returns the second result of [Batch.Sort]: the indices that put each row of x
// in order, of i32.
func (b *Batch) ArgSort(x Value, opts ...op.SortOpts) Value {
	_, indices := b.Sort(x, opts...)
	return indices
}
