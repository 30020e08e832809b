package cpu

import (
	"context"
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

// size returns the number of elements of a valid shape.
func size(s op.Shape) int {
	n, _ := s.Size()
	return n
}

// transposeTask exchanges the last two axes of arrays of 32-bit elements: it copies a permuted layout.
type transposeTask struct {
	mapTask
	lane  lane
	shape [3]int
}

func (t *transposeTask) configure(_ *op.Operation, _ *op.Attrs, dims []op.Shape) error {
	s := dims[0]
	rows, cols := s[len(s)-2], s[len(s)-1]
	shape := [3]int{size(s[:len(s)-2]), cols, rows}
	if t.shape == shape {
		return nil
	}
	l := &op.Layout{}
	for k, stride := range []int{rows * cols, 1, cols} {
		if n := shape[k]; n != 1 {
			l.F[l.Rank] = op.Factor{N: n, Hi: n, Stride: stride}
			l.Rank++
		}
	}
	x := driver.Operand{Slot: 0, Type: op.F32, Broadcast: op.Strided, Layout: l}
	f := &driver.Fused{In: []driver.Operand{x}, Out: []int{0}, Shape: op.Shape{size(s)}}
	p, err := t.d.fuse(f, []driver.Operand{{Slot: 1, Type: op.F32}})
	if err == nil {
		t.p, t.n, t.shape, t.at = p, p.n, shape, make([]place, 2)
	}
	return err
}

func (t *transposeTask) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	t.at[0].base, t.at[1].base = in[0], out[0]
	err := t.run(ctx, &t.lane)
	clear(t.at)
	return err
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
	valuesOnly bool // the indices are not used
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
	var index []int32
	if !t.valuesOnly {
		index = integers(out[1], n)
	}
	switch t.typ {
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

// ropeTask rotates pairs of elements by angles that are proportional to the position.
type ropeTask struct {
	d    *processor
	rope simd.Rope // without the positions
	n    int
	x    *op.Layout
	part operandPart
}

// layouts implements reader.
func (t *ropeTask) layouts(ls []*op.Layout) { t.x = ls[0] }

func (t *ropeTask) configure(_ *op.Operation, a *op.Attrs, dims []op.Shape) error {
	o, s := op.RopeOptsOf(a), dims[0]
	t.rope = simd.Rope{Outer: 1, Positions: s[0], Inner: s[1], Dim: s[2], Half: !o.Interleaved,
		Base: float64(o.Theta), Offset: o.Start}
	t.n = size(s)
	t.part = operandPart{0, t.n}
	if t.x == nil {
		return nil
	}
	off, strides, ok := t.x.Strides(s)
	if !ok {
		return driver.ErrUnsupported
	}
	t.rope.XPosition, t.rope.XInner = strides[0], strides[1]
	_, end := t.x.Bounds()
	t.part = operandPart{off, end - off}
	return nil
}

func (t *ropeTask) compute(_ context.Context, in, out []unsafe.Pointer) error {
	if t.n == 0 {
		return nil
	}
	r := t.rope
	if len(in) > op.RopeByPositions && in[op.RopeByPositions] != nil {
		r.At = integers(in[op.RopeByPositions], r.Positions)
	}
	if len(in) > op.RopeByFrequencies && in[op.RopeByFrequencies] != nil {
		r.Frequencies = slice(in[op.RopeByFrequencies], r.Dim/2)
	}
	r.Run(t.d.pool, slice(out[0], t.n), t.part.slice(in[0]))
	return nil
}
