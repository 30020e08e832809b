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
