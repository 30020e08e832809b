package cpu

import (
	"context"
	"math"
	"unsafe"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// gatherTask gathers rows of a table. The elements have 16 or 32 bits.
type gatherTask struct {
	d     *processor
	sizes op.Indexed
	table op.DType
	size  int         // size of an element in bytes; 0 means 4
	quant quantGather // for quantised tables
}

// operands implements typed.
func (t *gatherTask) operands(types []op.DType) { t.table = types[0] }

// elements implements mover.
func (t *gatherTask) elements(size int) { t.size = size }

func (t *gatherTask) configure(_ *op.Operation, a *op.Attrs, dims []op.Shape) (err error) {
	t.sizes, err = op.IndexedOf(a, dims[0], dims[1])
	t.quant.format, t.quant.rows, t.quant.cols = t.table.Block(), t.sizes.Extent, t.sizes.Inner
	return err
}

// missing16 is NaN in both 16-bit floating-point types.
const missing16 = 0x7fff

func (t *gatherTask) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	if t.table.Quantized() {
		return t.quantised(ctx, in, out)
	}
	s := t.sizes
	n, m := s.Outer*s.Extent*s.Inner, s.Outer*s.IDs*s.Inner
	ids := integers(in[1], s.IDs)
	pool := t.d.pool.Under(ctx)
	switch {
	case t.size == 1:
		simd.Gather(pool, arrayOf[uint8](out[0], m), arrayOf[uint8](in[0], n), ids, s.Outer, s.Extent, s.Inner, 0)
	case t.size == 2:
		simd.Gather(pool, arrayOf[uint16](out[0], m), arrayOf[uint16](in[0], n), ids, s.Outer, s.Extent, s.Inner, missing16)
	case t.table == op.I32 || t.table == op.U32 || t.table == op.Bool:
		simd.Gather(pool, unsigned(out[0], m), unsigned(in[0], n), ids, s.Outer, s.Extent, s.Inner, 0)
	default:
		simd.Gather(pool, slice(out[0], m), slice(in[0], n), ids, s.Outer, s.Extent, s.Inner, float32(math.NaN()))
	}
	pool.Release()
	return ctx.Err()
}

// quantised is compute for a quantised table.
func (t *gatherTask) quantised(ctx context.Context, in, out []unsafe.Pointer) error {
	s := t.sizes
	bytes, err := t.table.Bytes(op.Shape{s.Extent, s.Inner})
	if err != nil || s.IDs*s.Inner == 0 {
		return err
	}
	q := &t.quant
	q.dst, q.ids, q.table = slice(out[0], s.IDs*s.Inner), integers(in[1], s.IDs), arrayOf[byte](in[0], bytes)
	q.run(t.d)
	q.dst, q.ids, q.table = nil, nil, nil
	return ctx.Err()
}

// scatterTask updates the elements at the indices ids. A set supports elements of any size.
type scatterTask struct {
	d      *processor
	sizes  op.Indexed
	reduce op.ScatterReduce
	typ    op.DType
	size   int // bytes of an element

	bytes    simd.Scatter[uint8]
	halves   simd.Scatter[uint16]
	words    simd.Scatter[uint32]
	integers simd.Scatter[int32]
	floats   simd.Scatter[float32]
}

// operands implements typed.
func (t *scatterTask) operands(types []op.DType) { t.typ = types[0] }

// elements implements mover.
func (t *scatterTask) elements(size int) { t.size = size }

func (t *scatterTask) configure(_ *op.Operation, a *op.Attrs, dims []op.Shape) (err error) {
	t.sizes, err = op.IndexedOf(a, dims[0], dims[1])
	t.reduce = op.ScatterReduceOf(a)
	return err
}

func (t *scatterTask) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	switch {
	case t.size == 1:
		scatterInto(ctx, t, &t.bytes, in, out)
	case t.size == 2:
		scatterInto(ctx, t, &t.halves, in, out)
	case t.typ == op.I32 && t.reduce != op.ScatterSet:
		scatterInto(ctx, t, &t.integers, in, out)
	case t.reduce == op.ScatterSet, t.typ == op.U32, t.typ == op.Bool:
		scatterInto(ctx, t, &t.words, in, out)
	default:
		scatterInto(ctx, t, &t.floats, in, out)
	}
	return ctx.Err()
}

func scatterInto[T uint8 | uint16 | uint32 | int32 | float32](ctx context.Context, t *scatterTask, w *simd.Scatter[T], in, out []unsafe.Pointer) {
	s := t.sizes
	n := s.Outer * s.Extent * s.Inner
	*w = simd.Scatter[T]{Dst: arrayOf[T](out[0], n), V: arrayOf[T](in[2], s.Outer*s.IDs*s.Inner), IDs: integers(in[1], s.IDs),
		Outer: s.Outer, Extent: s.Extent, Inner: s.Inner, Reduce: t.reduce}
	if in[0] != out[0] {
		copy(w.Dst, arrayOf[T](in[0], n))
	}
	pool := t.d.pool.Under(ctx)
	w.Run(pool)
	pool.Release()
	*w = simd.Scatter[T]{}
}
