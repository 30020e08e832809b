package batch

import "github.com/rayo-go/rayo/op"

// TopK returns the k greatest elements of each row of x [... n], greatest
// first, and the columns where they are, of i32: two values [... k]. NaN counts
// as the greatest; of equal elements the one with the lower column comes
// first.
//
// A k outside [0, n] is [op.ErrShape], which Execute or Compile returns.
// docs/OPS.md#topk.
func (b *Batch) TopK(x Value, k int) (values, indices Value) {
	values = b.apply(op.TopK, op.TopKOpts{K: k}.Attrs(), x)
	return values, b.second(values)
}

// Sort returns the elements of each row of x [... n] in ascending order, and their indices
// in the row, of i32. Both results have the shape of x. With Descending the greatest
// element comes first. With Along, the elements along these axes form one row:
//
//	values, order := b.Sort(x, op.SortOpts{Descending: true, Along: op.Axes(0)})
//
// The sort is stable in both orders. NaN counts as the greatest number, and -0 equals 0.
// docs/OPS.md#sort.
func (b *Batch) Sort(x Value, opts ...op.SortOpts) (values, indices Value) {
	o, err := op.OptionOf(opts)
	var along []op.Along
	if o.Along != (op.Along{}) {
		along = append(along, o.Along)
	}
	a := o.Attrs()
	if err != nil {
		a = op.AttrsOf(opts) // which says so
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
