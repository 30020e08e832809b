package batch

import (
	"fmt"
	"math"
	"slices"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/graph"
	"github.com/rayo-go/rayo/op"
)

// This file has the helpers of methods that are composed of operations: checks of operands, errors,
// and tables that depend on shapes.

// refuse records the error of the composed method with the given name.
func (b *Batch) refuse(name string, in []Value, format string, args ...any) Value {
	if b.unusable() {
		return Value{}
	}
	e := &device.OpError{Op: name, Device: b.dev.String(), Err: fmt.Errorf(format, args...)}
	for _, v := range in {
		e.Shapes = append(e.Shapes, v.Shape())
	}
	return b.fail(e)
}

// takes reports whether the operands of a composed method are values of this recording. If not, it
// records the error.
func (b *Batch) takes(name string, in ...Value) bool {
	if b.unusable() {
		return false
	}
	for _, v := range in {
		if !b.own(v) {
			b.refuse(name, in, "%w", b.foreign(v))
			return false
		}
	}
	return true
}

// given reports whether an optional operand is present.
func (v Value) given() bool { return v != Value{} }

// scalar returns v as an element of type t.
func (b *Batch) scalar(t op.DType, v float64) Value {
	return b.table(t, op.Shape{}, func(int) float64 { return v })
}

// whole returns an element of i32.
func (b *Batch) whole(v int) Value { return b.scalar(op.I32, float64(v)) }

// table returns an operand of type t with the elements f(0), f(1), and so on. It is a constant of
// the plan if it is small.
func (b *Batch) table(t op.DType, s op.Shape, f func(i int) float64) Value {
	if b.unusable() {
		return Value{}
	}
	n, err := s.Size()
	if t.Size() == 0 {
		return b.fail(fmt.Errorf("numbers of type %v are stored in blocks: use a type with single elements: %w", t, device.ErrUnsupported))
	}
	if err == nil && n > math.MaxInt/8 {
		err = fmt.Errorf("a table of shape %v: expected at most %d elements: %w", s, math.MaxInt/8, device.ErrShape)
	}
	if err != nil {
		return b.fail(err)
	}
	data := make([]byte, n*t.Size())
	for i := range n {
		t.PutFloat64(data, i, f(i))
	}
	s = append(op.Shape{}, s...)
	if n > maxConst {
		return b.upload(t, data, n, s)
	}
	c := b.add(&graph.Node{Kind: graph.Constant, Type: t, Shape: s, Ref: int32(len(b.g.Data))})
	if b.err == nil {
		b.g.Data = append(b.g.Data, data)
	}
	return c
}

// take returns the elements of x along an axis at the indices ids, which count from 0.
func (b *Batch) take(x Value, axis int, ids []int) Value {
	s := x.Shape()
	if s == nil || axis >= len(s) {
		return x // the error is already recorded
	}
	outer, n, inner := product(s[:axis]), s[axis], product(s[axis+1:])
	out := slices.Clone(s)
	out[axis] = len(ids)
	rows := b.table(op.I32, op.Shape{len(ids)}, func(i int) float64 { return float64(ids[i]) })
	if outer == 1 {
		return b.Reshape(b.Gather(b.Reshape(x, n, inner), rows), out...)
	}
	rows = b.Add(b.table(op.I32, op.Shape{outer, 1}, func(i int) float64 { return float64(i * n) }), rows)
	return b.Reshape(b.Gather(b.Reshape(x, outer*n, inner), rows), out...)
}

// product returns the number of elements of the extents of a value.
func product(extents []int) int {
	n := 1
	for _, d := range extents {
		n *= d
	}
	return n
}

// bounded reports whether a value may have the extents. It counts an extent of 0 as 1, so that
// tables for the value fit into memory too.
func bounded(extents []int) bool {
	s := slices.Clone(extents)
	for i := range s {
		s[i] = max(s[i], 1)
	}
	n, err := op.Shape(s).Size()
	return err == nil && n <= math.MaxInt32
}

// span returns the numbers [from, to).
func span(from, to int) []int {
	list := make([]int, 0, max(0, to-from))
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	return list
}

// channels reshapes numbers, one for each channel, so that they broadcast to x [n c ...]. It
// records an error if their number is not that of the channels.
func (b *Batch) channels(name string, x, v Value) Value {
	s := x.Shape()
	if !v.Shape().Equal(op.Shape{s[1]}) {
		return b.refuse(name, []Value{x, v}, "operand of shape %v: expected one number for each of %d channels: %w", v.Shape(), s[1], device.ErrShape)
	}
	return b.Reshape(v, append([]int{s[1]}, slices.Repeat([]int{1}, len(s)-2)...)...)
}
