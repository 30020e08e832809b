package device

import (
	"context"

	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/op"
)

func matMul(c, a, b, bias []float32, m, k, n int, opts []op.MatMulOpts) *request {
	products.use()
	o, err := op.OptionOf(opts)
	attrs := o.Attrs()
	r := newRequest(op.MatMul, &attrs, err)
	ar, ac, br, bc := m, k, k, n
	if o.TransA {
		ar, ac = k, m
	}
	if o.TransB {
		br, bc = n, k
	}
	r.floats(a, ar, ac)
	r.floats(b, br, bc)
	if bias != nil {
		r.floats(bias, n)
	}
	r.result(engine.Bytes(c), op.F32)
	r.rules()
	return r
}

// MatMul computes C[m,n] = A[m,k] · B[k,n] + bias[n], all row-major: a linear layer. A nil
// bias stands for zeros. With TransA the slice a holds [k,m], with TransB b holds [n,k]; Act is
// applied to each element of the result. Package batch multiplies stacks of matrices.
//
// # Accuracy
//
// float32 throughout; see docs/OPS.md for the bound.
func (d *Device) MatMul(ctx context.Context, c, a, b, bias []float32, m, k, n int, opts ...op.MatMulOpts) error {
	return d.do(ctx, matMul(c, a, b, bias, m, k, n, opts))
}

// MatMulAsync is MatMul without waiting.
func (d *Device) MatMulAsync(ctx context.Context, c, a, b, bias []float32, m, k, n int, opts ...op.MatMulOpts) *Pending {
	return d.begin(ctx, matMul(c, a, b, bias, m, k, n, opts))
}

func matVec(y, a, x []float32, m, n int, opts []op.MatVecOpts) *request {
	products.use()
	o, err := op.OptionOf(opts)
	attrs := o.Attrs()
	r := newRequest(op.MatVec, &attrs, err)
	if o.Trans {
		r.floats(a, n, m)
	} else {
		r.floats(a, m, n)
	}
	r.floats(x, n)
	r.result(engine.Bytes(y), op.F32)
	r.rules()
	return r
}

// MatVec computes y[m] = A[m,n] · x[n]. With Trans the slice a holds [n,m]. Errors and accuracy are
// as for [Device.MatMul].
func (d *Device) MatVec(ctx context.Context, y, a, x []float32, m, n int, opts ...op.MatVecOpts) error {
	return d.do(ctx, matVec(y, a, x, m, n, opts))
}

// MatVecAsync is MatVec without waiting.
func (d *Device) MatVecAsync(ctx context.Context, y, a, x []float32, m, n int, opts ...op.MatVecOpts) *Pending {
	return d.begin(ctx, matVec(y, a, x, m, n, opts))
}

func transpose(dst, x []float32, rows, cols int) *request {
	moves.use()
	r := newRequest(op.Transpose, &op.Attrs{}, nil)
	r.floats(x, rows, cols)
	r.result(engine.Bytes(dst), op.F32)
	r.rules()
	return r
}

// Transpose copies x[rows,cols] to dst[cols,rows]. dst must not share memory with x.
func (d *Device) Transpose(ctx context.Context, dst, x []float32, rows, cols int) error {
	return d.do(ctx, transpose(dst, x, rows, cols))
}

// TransposeAsync is Transpose without waiting.
func (d *Device) TransposeAsync(ctx context.Context, dst, x []float32, rows, cols int) *Pending {
	return d.begin(ctx, transpose(dst, x, rows, cols))
}

func conv2d(dst, x, w, bias []float32, xs, ws [4]int, opts []op.Conv2DOpts) *request {
	conv2Ds.use()
	o, err := op.OptionOf(opts)
	attrs := o.Attrs()
	r := newRequest(op.Conv2D, &attrs, err)
	r.floats(x, xs[:]...)
	r.floats(w, ws[:]...)
	if bias != nil {
		r.floats(bias, ws[0])
	}
	r.result(engine.Bytes(dst), op.F32)
	r.rules()
	return r
}

// Conv2D correlates images with filters, the convolution of neural networks. x holds [n, channels,
// height, width] with the extents xs, w holds [out, channels/groups, height, width] with the
// extents ws, and bias [out] or is nil. dst holds [n, out, height', width'] with height' = (height
// + 2·pad - dilation·(ws[2]-1) - 1)/stride + 1.
func (d *Device) Conv2D(ctx context.Context, dst, x, w, bias []float32, xs, ws [4]int, opts ...op.Conv2DOpts) error {
	return d.do(ctx, conv2d(dst, x, w, bias, xs, ws, opts))
}

// Conv2DAsync is Conv2D without waiting.
func (d *Device) Conv2DAsync(ctx context.Context, dst, x, w, bias []float32, xs, ws [4]int, opts ...op.Conv2DOpts) *Pending {
	return d.begin(ctx, conv2d(dst, x, w, bias, xs, ws, opts))
}

func gather(dst, table []float32, ids []int32, rows, dim int) *request {
	moves.use()
	r := newRequest(op.Gather, &op.Attrs{}, nil)
	r.floats(table, rows, dim)
	r.operand(engine.Bytes(ids), op.I32, len(ids))
	r.result(engine.Bytes(dst), op.F32)
	r.rules()
	return r
}

// Gather copies the rows of table[rows,dim] at the indices ids to dst[len(ids),dim], as an
// embedding does. IDs from -rows to -1 count from the end. Any other ID outside [0, rows) gives a
// row of NaN.
func (d *Device) Gather(ctx context.Context, dst, table []float32, ids []int32, rows, dim int) error {
	return d.do(ctx, gather(dst, table, ids, rows, dim))
}

// GatherAsync is Gather without waiting.
func (d *Device) GatherAsync(ctx context.Context, dst, table []float32, ids []int32, rows, dim int) *Pending {
	return d.begin(ctx, gather(dst, table, ids, rows, dim))
}

func topK(values []float32, indices []int32, x []float32, rows, cols, k int) *request {
	orders.use()
	attrs := op.TopKOpts{K: k}.Attrs()
	r := newRequest(op.TopK, &attrs, nil)
	r.floats(x, rows, cols)
	r.result(engine.Bytes(values), op.F32)
	r.result(engine.Bytes(indices), op.I32)
	r.rules()
	return r
}

// TopK finds the k greatest elements of each row of x[rows,cols], greatest
// first, and their columns: values[rows,k] and indices[rows,k]. NaN counts as
// the greatest; of equal elements the one with the lower column comes first.
func (d *Device) TopK(ctx context.Context, values []float32, indices []int32, x []float32, rows, cols, k int) error {
	return d.do(ctx, topK(values, indices, x, rows, cols, k))
}

// TopKAsync is TopK without waiting.
func (d *Device) TopKAsync(ctx context.Context, values []float32, indices []int32, x []float32, rows, cols, k int) *Pending {
	return d.begin(ctx, topK(values, indices, x, rows, cols, k))
}

func sortRows(values []float32, indices []int32, x []float32, rows, cols int, opts []op.SortOpts) *request {
	orders.use()
	o, err := op.OptionOf(opts)
	attrs := o.Attrs()
	r := newRequest(op.Sort, &attrs, err)
	r.floats(x, rows, cols)
	r.result(engine.Bytes(values), op.F32)
	r.result(engine.Bytes(indices), op.I32)
	r.rules()
	return r
}

// Sort sorts each row of x[rows,cols], in ascending order unless the options say Descending. It
// returns the sorted elements in values[rows,cols] and their original columns in
// indices[rows,cols]. NaN counts as the greatest element, and -0 as 0. Of equal elements the one
// with the lower column comes first in both orders. Only package batch supports the option Along.
func (d *Device) Sort(ctx context.Context, values []float32, indices []int32, x []float32, rows, cols int, opts ...op.SortOpts) error {
	return d.do(ctx, sortRows(values, indices, x, rows, cols, opts))
}

// SortAsync is Sort without waiting.
func (d *Device) SortAsync(ctx context.Context, values []float32, indices []int32, x []float32, rows, cols int, opts ...op.SortOpts) *Pending {
	return d.begin(ctx, sortRows(values, indices, x, rows, cols, opts))
}

// AttentionSize has the extents of an attention.
type AttentionSize struct {
	Heads   int // heads of queries
	KVHeads int // heads of keys and values, a divisor of Heads; 0 means Heads
	Tq, Tk  int // queries and keys of each head
	Dim     int // elements of a query, key or value
}

func attention(dst, q, k, v []float32, s AttentionSize, opts []op.AttentionOpts) *request {
	attentions.use()
	o, err := op.OptionOf(opts)
	if s.KVHeads == 0 {
		s.KVHeads = s.Heads
	}
	attrs := o.Attrs()
	r := newRequest(op.Attention, &attrs, err)
	r.floats(q, s.Heads, s.Tq, s.Dim)
	r.floats(k, s.KVHeads, s.Tk, s.Dim)
	r.floats(v, s.KVHeads, s.Tk, s.Dim)
	r.result(engine.Bytes(dst), op.F32)
	r.rules()
	return r
}

// Attention computes softmax(q·kᵀ·scale)·v for each head. q and dst hold [Heads, Tq, Dim], k and v
// hold [KVHeads, Tk, Dim]. If there are fewer heads of keys than of queries, neighbouring heads of
// queries share a head of keys.
func (d *Device) Attention(ctx context.Context, dst, q, k, v []float32, s AttentionSize, opts ...op.AttentionOpts) error {
	return d.do(ctx, attention(dst, q, k, v, s, opts))
}

// AttentionAsync is Attention without waiting.
func (d *Device) AttentionAsync(ctx context.Context, dst, q, k, v []float32, s AttentionSize, opts ...op.AttentionOpts) *Pending {
	return d.begin(ctx, attention(dst, q, k, v, s, opts))
}

func rope(dst, x []float32, t, heads, dim int, opts []op.RopeOpts) *request {
	attentions.use()
	o, err := op.OptionOf(opts)
	attrs := o.Attrs()
	r := newRequest(op.Rope, &attrs, err)
	r.floats(x, t, heads, dim)
	r.result(engine.Bytes(dst), op.F32)
	r.rules()
	return r
}

// Rope rotates the pairs of each head of x[t,heads,dim] by angles that grow with the position.
// Start is the position of the first row.
func (d *Device) Rope(ctx context.Context, dst, x []float32, t, heads, dim int, opts ...op.RopeOpts) error {
	return d.do(ctx, rope(dst, x, t, heads, dim, opts))
}

// RopeAsync is Rope without waiting.
func (d *Device) RopeAsync(ctx context.Context, dst, x []float32, t, heads, dim int, opts ...op.RopeOpts) *Pending {
	return d.begin(ctx, rope(dst, x, t, heads, dim, opts))
}
