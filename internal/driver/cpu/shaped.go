package cpu

import (
	"context"
	"math"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// arrayOf returns n elements of memory.
func arrayOf[T any](p unsafe.Pointer, n int) []T {
	if p == nil || n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(p), n)
}

func integers(p unsafe.Pointer, n int) []int32 { return arrayOf[int32](p, n) }

func unsigned(p unsafe.Pointer, n int) []uint32 { return arrayOf[uint32](p, n) }

// size returns the elements of a shape that has been checked.
func size(s op.Shape) int {
	n, _ := s.Size()
	return n
}

// transposeTask exchanges the last two axes of arrays of 32-bit elements.
type transposeTask struct {
	d                 *processor
	batch, rows, cols int
}

func (t *transposeTask) configure(_ *op.Operation, _ *op.Attrs, dims []op.Shape) error {
	s := dims[0]
	t.rows, t.cols = s[len(s)-2], s[len(s)-1]
	t.batch = size(s[:len(s)-2])
	return nil
}

func (t *transposeTask) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	n := t.rows * t.cols
	for b := range t.batch {
		if err := ctx.Err(); err != nil {
			return err
		}
		pool := t.d.pool.Under(ctx)
		simd.Transpose(pool, slice(unsafe.Add(out[0], 4*b*n), n), slice(unsafe.Add(in[0], 4*b*n), n), t.rows, t.cols)
		pool.Release()
	}
	return ctx.Err()
}

// reshapeTask copies.
type reshapeTask struct{ n int }

func (t *reshapeTask) configure(_ *op.Operation, _ *op.Attrs, dims []op.Shape) error {
	t.n = size(dims[0])
	return nil
}

func (t *reshapeTask) compute(_ context.Context, in, out []unsafe.Pointer) error {
	copy(slice(out[0], t.n), slice(in[0], t.n))
	return nil
}

// topKTask finds the greatest elements of rows.
type topKTask struct {
	d             *processor
	rows, cols, k int
}

func (t *topKTask) configure(_ *op.Operation, a *op.Attrs, dims []op.Shape) error {
	t.rows, t.cols = dims[0].Rows()
	t.k = op.TopKOptsOf(a).K
	return nil
}

func (t *topKTask) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	pool := t.d.pool.Under(ctx)
	simd.TopK(pool, slice(out[0], t.rows*t.k), integers(out[1], t.rows*t.k), slice(in[0], t.rows*t.cols), t.rows, t.cols, t.k)
	pool.Release()
	return ctx.Err()
}

// sortTask sorts rows.
type sortTask struct {
	d          *processor
	rows, cols int
	descending bool
	typ        op.DType
}

// operands implements typed.
func (t *sortTask) operands(types []op.DType) { t.typ = types[0] }

func (t *sortTask) configure(_ *op.Operation, a *op.Attrs, dims []op.Shape) error {
	t.rows, t.cols = dims[0].Rows()
	t.descending = op.SortOptsOf(a).Descending
	return nil
}

func (t *sortTask) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	n := t.rows * t.cols
	pool := t.d.pool.Under(ctx)
	switch index := integers(out[1], n); t.typ {
	case op.I32:
		simd.Sort(pool, integers(out[0], n), index, integers(in[0], n), t.rows, t.cols, t.descending)
	case op.U32:
		simd.Sort(pool, unsigned(out[0], n), index, unsigned(in[0], n), t.rows, t.cols, t.descending)
	default:
		simd.Sort(pool, slice(out[0], n), index, slice(in[0], n), t.rows, t.cols, t.descending)
	}
	pool.Release()
	return ctx.Err()
}

// attentionTask is the scaled dot-product attention.
type attentionTask struct {
	d     *processor
	sizes op.AttentionSizes
	a     simd.Attention // but for the memory
	in    []*op.Layout
	to    *op.Layout         // where the result goes, or nil for row by row
	q     []attentionOperand // q, k, v and the result, if they are taken one of the batch after the other
}

// attentionOperand is where an operand is: of one of the batch from the one before,
// and of heads and rows.
type attentionOperand struct {
	operandPart
	batch, head, row int
}

// layouts implements reader.
func (t *attentionTask) layouts(ls []*op.Layout) { t.in = ls }

// place finds the operands.
func (t *attentionTask) place() error {
	s := t.sizes
	t.q = nil
	var layouts [3]*op.Layout
	copy(layouts[:], t.in)
	if layouts == [3]*op.Layout{} && s.Lengths == 0 && t.to == nil {
		return nil
	}
	for i, l := range []*op.Layout{layouts[0], layouts[1], layouts[2], t.to} {
		heads, rows := s.KVHeads, s.Tk
		if i%3 == 0 {
			heads, rows = s.Heads, s.Tq
		}
		o := attentionOperand{operandPart{0, s.Batch * heads * rows * s.D}, heads * rows * s.D, rows * s.D, s.D}
		if l != nil {
			off, strides, ok := l.Strides(op.Shape{s.Batch, heads, rows, s.D})
			if !ok {
				return driver.ErrUnsupported
			}
			if rows == 1 {
				strides[2] = s.D
			}
			first, end := l.Bounds()
			o = attentionOperand{operandPart{off, end - first}, strides[0], strides[1], strides[2]}
		}
		t.q = append(t.q, o)
	}
	return nil
}

func (t *attentionTask) configure(_ *op.Operation, a *op.Attrs, dims []op.Shape) error {
	s, err := op.AttentionOf(a, dims[:len(dims)-1])
	t.sizes = s
	if s.Scale == 0 {
		s.Scale = float32(math.Copysign(0, -1)) // 0 has another meaning there
	}
	// A batch is more heads.
	t.a = simd.Attention{Heads: s.Batch * s.Heads, KVHeads: s.Batch * s.KVHeads, Queries: s.Tq, Keys: s.Tk,
		Dim: s.D, Scale: s.Scale, Causal: op.AttentionOptsOf(a).Causal}
	if err != nil {
		return err
	}
	return t.place()
}

func (t *attentionTask) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	a := t.a
	q, k := a.Heads*a.Queries*a.Dim, a.KVHeads*a.Keys*a.Dim
	if q == 0 {
		return nil
	}
	pool := t.d.pool.Under(ctx)
	defer pool.Release()
	a.Dst = slice(out[0], q)
	if t.q == nil {
		a.Q, a.K, a.V = slice(in[0], q), slice(in[1], k), slice(in[2], k)
		a.Run(pool)
		return ctx.Err()
	}
	s := t.sizes
	var lengths []int32
	if s.Lengths > 0 {
		lengths = integers(in[3], s.Lengths)
	}
	a.Heads, a.KVHeads = s.Heads, s.KVHeads
	dst := t.q[3]
	a.DstHead, a.DstRow = dst.head, dst.row
	a.QHead, a.QRow, a.KHead, a.KRow, a.VHead, a.VRow = t.q[0].head, t.q[0].row, t.q[1].head, t.q[1].row, t.q[2].head, t.q[2].row
	x, y, z := t.q[0].slice(in[0]), t.q[1].slice(in[1]), t.q[2].slice(in[2])
	for i := range s.Batch {
		part := a
		if lengths != nil {
			part.Keys = s.Of(int(lengths[i%len(lengths)])).Tk
		}
		part.Q, part.Dst = x[i*t.q[0].batch:], a.Dst[i*dst.batch:]
		if part.Keys > 0 {
			part.K, part.V = y[i*t.q[1].batch:], z[i*t.q[2].batch:]
		}
		part.Run(pool)
	}
	return ctx.Err()
}

// ropeTask turns pairs of elements by angles that grow with the position.
type ropeTask struct {
	d    *processor
	rope simd.Rope // but for the positions
	n    int
}

func (t *ropeTask) configure(_ *op.Operation, a *op.Attrs, dims []op.Shape) error {
	o, s := op.RopeOptsOf(a), dims[0]
	t.rope = simd.Rope{Outer: 1, Positions: s[0], Inner: s[1], Dim: s[2], Half: !o.Interleaved,
		Base: float64(o.Theta), Offset: o.Start}
	t.n = size(s)
	return nil
}

func (t *ropeTask) compute(_ context.Context, in, out []unsafe.Pointer) error {
	if t.n == 0 {
		return nil
	}
	r := t.rope
	if len(in) > 1 && in[1] != nil {
		r.At = integers(in[1], r.Positions)
	}
	r.Run(t.d.pool, slice(out[0], t.n), slice(in[0], t.n))
	return nil
}
