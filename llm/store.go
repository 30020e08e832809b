package llm

import (
	"context"
	"fmt"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// store holds the keys (or the values) of one layer in the cache: an array [rows width] of f32 or
// f16, or 8-bit numbers with a factor for each group.
type store struct {
	width   int
	data    *device.Buffer // [rows width]; or [rows width/4] of u32, with four numbers in a word
	factors *device.Buffer // [rows width/groupSize] of f16; nil for floats
}

// groupSize is the number of 8-bit numbers with the same factor, as in a block of q8_0.
const groupSize = 32

// newStore returns a store of zeros.
func newStore(ctx context.Context, dev *device.Device, typ op.DType, rows, width int) (s store, err error) {
	s.width = width
	if typ != op.Q8_0 {
		s.data, err = dev.NewBuffer(ctx, typ, rows, width)
		return s, err
	}
	if width%groupSize != 0 {
		return s, fmt.Errorf("keys or values of %d elements in a cache of q8_0, whose blocks have %d: %w", width, groupSize, device.ErrUnsupported)
	}
	if s.data, err = dev.NewBuffer(ctx, op.U32, rows, width/4); err != nil {
		return s, err
	}
	if s.factors, err = dev.NewBuffer(ctx, op.F16, rows, width/groupSize); err != nil {
		_ = s.data.Close()
	}
	return s, err
}

func (s store) close() {
	_ = s.data.Close()
	if s.factors != nil {
		_ = s.factors.Close()
	}
}

// floats reports whether attention can read the store without conversion.
func (s store) floats() bool { return s.factors == nil }

// put records the store of rows [n width] at places.
func (s store) put(b *batch.Batch, places, rows batch.Value) {
	if s.floats() {
		if s.data.Type() != op.F32 {
			rows = b.Cast(rows, s.data.Type())
		}
		b.Store(s.data, 0, b.Scatter(b.Use(s.data), places, rows))
		return
	}
	n := rows.Shape()[0]
	groups := b.Reshape(rows, n, s.width/groupSize, groupSize)
	factors := b.Cast(b.Scale(b.Max(b.Abs(groups), op.Axes(2).KeepDims()), 1.0/127), op.F16)
	f := b.Cast(factors, op.F32)
	zero := b.Const(0)
	q := b.Where(b.Greater(f, zero), b.Round(b.Div(groups, f)), zero)
	q = b.Minimum(b.Maximum(q, b.Const(-127)), b.Const(127)) // rounding f to f16 may let q exceed the range
	// The numbers are from 1 to 255; pack four in a word.
	q = b.Cast(b.Reshape(b.Add(q, b.Const(128)), n, s.width/4, 4), op.U32)
	words := b.Sum(b.ShiftLeft(q, byteShifts(b)), op.Axes(2))
	b.Store(s.data, 0, b.Scatter(b.Use(s.data), places, words))
	b.Store(s.factors, 0, b.Scatter(b.Use(s.factors), places, b.Reshape(factors, n, s.width/groupSize)))
}

// byteShifts returns the bit positions of the bytes of a word.
func byteShifts(b *batch.Batch) batch.Value { return batch.Upload(b, []uint32{0, 8, 16, 24}) }

// get records a load of the rows at places, as f32.
func (s store) get(b *batch.Batch, places batch.Value) batch.Value {
	if s.floats() {
		return b.Cast(b.Gather(b.Use(s.data), places), op.F32)
	}
	n := places.Shape()[0]
	words := b.Reshape(b.Gather(b.Use(s.data), places), n, s.width/4, 1)
	q := b.And(b.ShiftRight(words, byteShifts(b)), batch.Upload(b, []uint32{255}))
	x := b.Reshape(b.Sub(b.Cast(q, op.F32), b.Const(128)), n, s.width/groupSize, groupSize)
	f := b.Cast(b.Gather(b.Use(s.factors), places), op.F32)
	return b.Reshape(b.Mul(x, b.Reshape(f, n, s.width/groupSize, 1)), n, s.width)
}

// copy records a copy of the rows of a page to other rows, through temporary buffers that it
// returns. Without them, the graph would gather from and scatter to the same buffer, and would copy
// the whole buffer first.
func (s store) copy(ctx context.Context, b *batch.Batch, from, to batch.Value) (pages []*device.Buffer, err error) {
	for _, buf := range []*device.Buffer{s.data, s.factors} {
		if buf == nil {
			continue
		}
		page, err := b.Device().NewBuffer(ctx, buf.Type(), PageSize, buf.Shape()[1])
		if err != nil {
			return pages, err
		}
		pages = append(pages, page)
		b.Store(page, 0, b.Gather(b.Use(buf), from))
		b.Store(buf, 0, b.Scatter(b.Use(buf), to, b.Use(page)))
	}
	return pages, nil
}
