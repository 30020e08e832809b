package device

import (
	"context"
	"fmt"

	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/op"
)

func shaped(o *op.Operation, a op.Attrs, err error, out []engine.Host, in ...engine.Host) *request {
	r := newRequest(o, &a, err)
	r.nin = copy(r.in[:], in)
	r.expect(out...)
	r.rules()
	return r
}

// orNone returns x as an operand, or the absent operand if x is nil.
func orNone(x []float32, s ...int) engine.Host {
	if x == nil {
		return engine.Host{}
	}
	return f32(x, s)
}

func matMul(c, a, b, bias []float32, lead op.Shape, m, k, n int, opts []op.MatMulOpts) *request {
	o, err := op.OptionOf(opts)
	as, bs := op.Shape{m, k}, op.Shape{k, n}
	if o.TransA {
		as = op.Shape{k, m}
	}
	if o.TransB {
		bs = op.Shape{n, k}
	}
	in := []engine.Host{f32(a, append(lead[:len(lead):len(lead)], as...)), f32(b, append(lead[:len(lead):len(lead)], bs...)), orNone(bias, n)}
	if bias == nil {
		in = in[:2]
	}
	return shaped(op.MatMul, o.Attrs(), err, []engine.Host{f32(c, nil)}, in...)
}

// MatMul computes C[m,n] = A[m,k] · B[k,n], all row-major. With TransA the
// slice a holds [k,m], with TransB b holds [n,k]; Act is applied to each
// element of the result.
//
// # Errors
//   - [ErrShape] if a length differs from its extents or a product of extents overflows.
//   - [ErrOverlap] if c shares memory with a or b.
//
// # Accuracy
//
// float32 throughout; see docs/OPS.md for the bound.
func (d *Device) MatMul(ctx context.Context, c, a, b []float32, m, k, n int, opts ...op.MatMulOpts) error {
	return d.do(ctx, matMul(c, a, b, nil, nil, m, k, n, opts))
}

// MatMulAsync is MatMul without waiting.
func (d *Device) MatMulAsync(ctx context.Context, c, a, b []float32, m, k, n int, opts ...op.MatMulOpts) *Pending {
	return d.begin(ctx, matMul(c, a, b, nil, nil, m, k, n, opts))
}

// MatMulBias is MatMul with bias[n] added to every row before the activation:
// a linear layer.
func (d *Device) MatMulBias(ctx context.Context, c, a, b, bias []float32, m, k, n int, opts ...op.MatMulOpts) error {
	return d.do(ctx, matMul(c, a, b, bias, nil, m, k, n, opts))
}

// MatMulBiasAsync is MatMulBias without waiting.
func (d *Device) MatMulBiasAsync(ctx context.Context, c, a, b, bias []float32, m, k, n int, opts ...op.MatMulOpts) *Pending {
	return d.begin(ctx, matMul(c, a, b, bias, nil, m, k, n, opts))
}

// MatMulBatch computes batch products, one after the other in a, b and c. See
// [Device.MatMul].
func (d *Device) MatMulBatch(ctx context.Context, c, a, b []float32, batch, m, k, n int, opts ...op.MatMulOpts) error {
	return d.do(ctx, matMul(c, a, b, nil, op.Shape{batch}, m, k, n, opts))
}

// MatMulBatchAsync is MatMulBatch without waiting.
func (d *Device) MatMulBatchAsync(ctx context.Context, c, a, b []float32, batch, m, k, n int, opts ...op.MatMulOpts) *Pending {
	return d.begin(ctx, matMul(c, a, b, nil, op.Shape{batch}, m, k, n, opts))
}

func matVec(y, a, x []float32, m, n int, opts []op.MatVecOpts) *request {
	o, err := op.OptionOf(opts)
	as := op.Shape{m, n}
	if o.Trans {
		as = op.Shape{n, m}
	}
	return shaped(op.MatVec, o.Attrs(), err, []engine.Host{f32(y, nil)}, f32(a, as), f32(x, op.Shape{n}))
}

// MatVec computes y[m] = A[m,n] · x[n]. With Trans the slice a holds [n,m].
// Errors and accuracy are those of [Device.MatMul].
func (d *Device) MatVec(ctx context.Context, y, a, x []float32, m, n int, opts ...op.MatVecOpts) error {
	return d.do(ctx, matVec(y, a, x, m, n, opts))
}

// MatVecAsync is MatVec without waiting.
func (d *Device) MatVecAsync(ctx context.Context, y, a, x []float32, m, n int, opts ...op.MatVecOpts) *Pending {
	return d.begin(ctx, matVec(y, a, x, m, n, opts))
}

func transpose(dst, x []float32, rows, cols int) *request {
	return shaped(op.Transpose, op.Attrs{}, nil, []engine.Host{f32(dst, nil)}, f32(x, op.Shape{rows, cols}))
}

// Transpose copies x[rows,cols] to dst[cols,rows]. dst must not share memory
// with x.
func (d *Device) Transpose(ctx context.Context, dst, x []float32, rows, cols int) error {
	return d.do(ctx, transpose(dst, x, rows, cols))
}

// TransposeAsync is Transpose without waiting.
func (d *Device) TransposeAsync(ctx context.Context, dst, x []float32, rows, cols int) *Pending {
	return d.begin(ctx, transpose(dst, x, rows, cols))
}

func conv2d(dst, x, w, bias []float32, xs, ws [4]int, opts []op.Conv2DOpts) *request {
	o, err := op.OptionOf(opts)
	in := []engine.Host{f32(x, xs[:]), f32(w, ws[:]), orNone(bias, ws[0])}
	if bias == nil {
		in = in[:2]
	}
	return shaped(op.Conv2D, o.Attrs(), err, []engine.Host{f32(dst, nil)}, in...)
}

// Conv2D correlates images with windows, as neural networks convolve: x holds
// [n, channels, height, width] as xs says, w [out, channels/groups, height,
// width] as ws says, bias [out] or nil. dst holds [n, out, height', width']
// with height' = (height + 2·pad - dilation·(window-1) - 1)/stride + 1.
//
// # Errors
//   - [ErrShape] if a length differs from its extents or the window does not fit.
//   - [ErrOverlap] if dst shares memory with an operand.
func (d *Device) Conv2D(ctx context.Context, dst, x, w, bias []float32, xs, ws [4]int, opts ...op.Conv2DOpts) error {
	return d.do(ctx, conv2d(dst, x, w, bias, xs, ws, opts))
}

// Conv2DAsync is Conv2D without waiting.
func (d *Device) Conv2DAsync(ctx context.Context, dst, x, w, bias []float32, xs, ws [4]int, opts ...op.Conv2DOpts) *Pending {
	return d.begin(ctx, conv2d(dst, x, w, bias, xs, ws, opts))
}

func gather(dst, table []float32, ids []int32, rows, dim int) *request {
	r := shaped(op.Gather, op.Attrs{}, nil, []engine.Host{f32(dst, nil)}, f32(table, op.Shape{rows, dim}), i32(ids, op.Shape{len(ids)}))
	for i, id := range ids {
		if r.err == nil && (id < 0 || int(id) >= rows) {
			r.err = fmt.Errorf("ids[%d] is %d in a table of %d rows: %w", i, id, rows, ErrShape)
		}
	}
	return r
}

// Gather copies the rows of table[rows,dim] that ids names to
// dst[len(ids),dim]: an embedding.
//
// # Errors
//   - [ErrShape] if a length differs from its extents or an id is outside [0, rows).
//   - [ErrOverlap] if dst shares memory with an operand.
func (d *Device) Gather(ctx context.Context, dst, table []float32, ids []int32, rows, dim int) error {
	return d.do(ctx, gather(dst, table, ids, rows, dim))
}

// GatherAsync is Gather without waiting.
func (d *Device) GatherAsync(ctx context.Context, dst, table []float32, ids []int32, rows, dim int) *Pending {
	return d.begin(ctx, gather(dst, table, ids, rows, dim))
}

func topK(values []float32, indices []int32, x []float32, rows, cols, k int) *request {
	return shaped(op.TopK, op.TopKOpts{K: k}.Attrs(), nil, []engine.Host{f32(values, nil), i32(indices, nil)}, f32(x, op.Shape{rows, cols}))
}

// TopK finds the k greatest elements of each row of x[rows,cols], greatest
// first, and their columns: values[rows,k] and indices[rows,k]. NaN counts as
// the greatest; of equal elements the one with the lower column comes first.
//
// # Errors
//   - [ErrShape] if a length differs from its extents or k is not in [0, cols].
//   - [ErrOverlap] if a result shares memory with x.
func (d *Device) TopK(ctx context.Context, values []float32, indices []int32, x []float32, rows, cols, k int) error {
	return d.do(ctx, topK(values, indices, x, rows, cols, k))
}

// TopKAsync is TopK without waiting.
func (d *Device) TopKAsync(ctx context.Context, values []float32, indices []int32, x []float32, rows, cols, k int) *Pending {
	return d.begin(ctx, topK(values, indices, x, rows, cols, k))
}

// AttentionSize is the extents of an attention.
type AttentionSize struct {
	Heads   int // of queries
	KVHeads int // of keys and values; a divisor of Heads; 0 stands for Heads
	Tq, Tk  int // queries, and keys, of each head
	Dim     int // elements of a query, key or value
}

func attention(dst, q, k, v []float32, s AttentionSize, opts []op.AttentionOpts) *request {
	o, err := op.OptionOf(opts)
	if s.KVHeads == 0 {
		s.KVHeads = s.Heads
	}
	kv := op.Shape{s.KVHeads, s.Tk, s.Dim}
	return shaped(op.Attention, o.Attrs(), err, []engine.Host{f32(dst, nil)},
		f32(q, op.Shape{s.Heads, s.Tq, s.Dim}), f32(k, kv), f32(v, kv))
}

// Attention computes softmax(q·kᵀ·scale)·v for each head: q and dst hold
// [Heads, Tq, Dim], k and v [KVHeads, Tk, Dim]. With fewer heads of keys than
// of queries, neighbouring heads of queries share one.
//
// # Errors
//   - [ErrShape] if a length differs from its extents.
//   - [ErrOverlap] if dst shares memory with an operand.
func (d *Device) Attention(ctx context.Context, dst, q, k, v []float32, s AttentionSize, opts ...op.AttentionOpts) error {
	return d.do(ctx, attention(dst, q, k, v, s, opts))
}

// AttentionAsync is Attention without waiting.
func (d *Device) AttentionAsync(ctx context.Context, dst, q, k, v []float32, s AttentionSize, opts ...op.AttentionOpts) *Pending {
	return d.begin(ctx, attention(dst, q, k, v, s, opts))
}

func rope(dst, x []float32, t, heads, dim int, opts []op.RopeOpts) *request {
	o, err := op.OptionOf(opts)
	return shaped(op.Rope, o.Attrs(), err, []engine.Host{f32(dst, nil)}, f32(x, op.Shape{t, heads, dim}))
}

// Rope turns the pairs of each head of x[t,heads,dim] by angles that grow with
// the position, which is Start for the first row.
//
// # Errors
//   - [ErrShape] if a length differs from its extents or dim is odd.
//   - [ErrOverlap] if dst shares memory with x.
func (d *Device) Rope(ctx context.Context, dst, x []float32, t, heads, dim int, opts ...op.RopeOpts) error {
	return d.do(ctx, rope(dst, x, t, heads, dim, opts))
}

// RopeAsync is Rope without waiting.
func (d *Device) RopeAsync(ctx context.Context, dst, x []float32, t, heads, dim int, opts ...op.RopeOpts) *Pending {
	return d.begin(ctx, rope(dst, x, t, heads, dim, opts))
}
