package batch

import "github.com/rayo-go/rayo/op"

// Reshape returns the elements of x in another shape; nothing is moved. One
// extent may be -1 and follows from the others.
//
// A wrong number of elements is [op.ErrShape], which Execute or Compile
// returns. docs/OPS.md#reshape.
func (b *Batch) Reshape(x Value, shape ...int) Value {
	a, err := op.ReshapeTo(shape...)
	if err != nil {
		return b.failOp(op.Reshape, err, []Value{x})
	}
	return b.apply(op.Reshape, a, x)
}

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
