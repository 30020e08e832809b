package batch

import (
	"fmt"
	"math"
	"slices"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// The methods of this file reorder or repeat the elements of a value. All but Roll, PadMode and
// Diff are views.

// MoveAxis returns x with the axis from moved to place to of the result. The other axes
// keep their order. Places below 0 count from the end.
//
// Execute or Compile returns [op.ErrShape] for an axis that x does not have.
func (b *Batch) MoveAxis(x Value, from, to int) Value {
	if err := b.needs(x, 1); err != nil {
		return b.fail(fmt.Errorf("move_axis: %w", err))
	}
	i, err := x.axis(from)
	if err != nil {
		return b.fail(fmt.Errorf("move_axis: %w", err))
	}
	j, err := x.axis(to)
	if err != nil {
		return b.fail(fmt.Errorf("move_axis: %w", err))
	}
	order := make([]int, len(x.Shape()))
	for k := range order {
		order[k] = k
	}
	return b.Permute(x, slices.Insert(slices.Delete(order, i, i+1), j, i)...)
}

// Chunk splits x into n parts along an axis, as torch.chunk does. All parts have the same
// extent, except the last, which may be shorter. An axis of few elements gives fewer than n
// parts. An axis below 0 counts from the end.
//
// Execute or Compile returns [op.ErrShape] for a number of parts below 1.
func (b *Batch) Chunk(x Value, axis, n int) []Value {
	err := b.needs(x, 1)
	i := 0
	if err == nil {
		i, err = x.axis(axis)
	}
	if err == nil && n < 1 {
		err = fmt.Errorf("%d parts of an axis: expected 1 or more: %w", n, device.ErrShape)
	}
	if err != nil {
		b.fail(fmt.Errorf("chunk: %w", err))
		return nil
	}
	rest := x.Shape()[i]
	each := max((rest-1)/n+1, 0)
	if rest == 0 {
		return []Value{x}
	}
	var parts []int
	for ; rest > 0; rest -= each {
		parts = append(parts, min(each, rest))
	}
	return b.Split(x, i, parts...)
}

// Repeat returns x with each element along an axis n times in succession. An axis
// below 0 counts from the end.
//
//	b.Repeat(x, 0, 2) // [1 2] to [1 1 2 2]
//
// Execute or Compile returns [op.ErrShape] for a number below 0.
func (b *Batch) Repeat(x Value, axis, n int) Value { return b.repeat("repeat", x, axis, n, false) }

// Tile returns x repeated as a whole, counts[i] times along axis i. If there are fewer
// counts than axes, they apply to the last axes. If there are more, x gets new axes in
// front.
//
//	b.Tile(x, 2) // [1 2] to [1 2 1 2]
//
// Execute or Compile returns [op.ErrShape] for a count below 0.
func (b *Batch) Tile(x Value, counts ...int) Value {
	if err := b.needs(x, 0); err != nil {
		return b.fail(fmt.Errorf("tile: %w", err))
	}
	if more := len(counts) - len(x.Shape()); more > 0 {
		x = b.Reshape(x, append(ones(more), x.Shape()...)...)
	}
	for i, n := range counts {
		if n != 1 {
			x = b.repeat("tile", x, i-len(counts), n, true)
		}
	}
	return x
}

// repeat returns x with each element of an axis n times, or the axis as a whole.
func (b *Batch) repeat(name string, x Value, axis, n int, whole bool) Value {
	err := b.needs(x, 1)
	i := 0
	if err == nil {
		i, err = x.axis(axis)
	}
	if err == nil && n < 0 {
		err = fmt.Errorf("%d repetitions: expected 0 or more: %w", n, device.ErrShape)
	}
	var s op.Shape
	if err == nil {
		s = slices.Clone(x.Shape())
		if d := s[i]; d > 0 && n > math.MaxInt/d {
			err = fmt.Errorf("%v repeated %d times along axis %d overflows: %w", s, n, i, device.ErrShape)
		}
	}
	if err != nil {
		return b.fail(fmt.Errorf("%s: %w", name, err))
	}
	outer, d, inner := extent(s[:i]), s[i], extent(s[i+1:])
	s[i] *= n
	if whole {
		x = b.Expand(b.Reshape(x, outer, 1, d, inner), outer, n, d, inner)
	} else {
		x = b.Expand(b.Reshape(x, outer, d, 1, inner), outer, d, n, inner)
	}
	return b.Reshape(x, s...)
}

// extent returns the number of elements of a valid shape.
func extent(s op.Shape) int {
	n, _ := s.Size()
	return n
}

// Roll returns x with the elements along an axis moved by shift places. Elements that leave
// one end come in at the other. A shift below 0 moves them towards the start, and an axis
// below 0 counts from the end.
//
//	b.Roll(x, 0, 1) // [1 2 3] to [3 1 2]
//
// Execute or Compile returns [op.ErrShape] for an axis that x does not have.
func (b *Batch) Roll(x Value, axis, shift int) Value {
	err := b.needs(x, 1)
	i := 0
	if err == nil {
		i, err = x.axis(axis)
	}
	if err != nil {
		return b.fail(fmt.Errorf("roll: %w", err))
	}
	n := x.Shape()[i]
	if n == 0 || shift%n == 0 {
		return x
	}
	at := n - (shift%n+n)%n
	return b.Concat(i, b.Slice(x, i, at, op.End, 1), b.Slice(x, i, 0, at, 1))
}

// Rot90 rotates x by k quarter turns in the plane of two axes, from axis1 towards axis2. k
// may be below 0. Axes below 0 count from the end.
//
// Execute or Compile returns [op.ErrShape] for the same axis twice.
func (b *Batch) Rot90(x Value, k, axis1, axis2 int) Value {
	err := b.needs(x, 2)
	var i, j int
	if err == nil {
		i, err = x.axis(axis1)
	}
	if err == nil {
		j, err = x.axis(axis2)
	}
	if err == nil && i == j {
		err = fmt.Errorf("both axes of the plane are axis %d: expected two different axes of %v: %w", i, x.Shape(), device.ErrShape)
	}
	if err != nil {
		return b.fail(fmt.Errorf("rot90: %w", err))
	}
	switch (k%4 + 4) % 4 {
	case 1:
		return b.SwapAxes(b.Flip(x, j), i, j)
	case 2:
		return b.Flip(x, i, j)
	case 3:
		return b.Flip(b.SwapAxes(x, i, j), j)
	}
	return x
}

// Diff returns the differences of adjacent elements along an axis: each element minus the previous
// one. It repeats this n times. Each time the axis loses an element, until none is left. An axis
// below 0 counts from the end.
//
// Execute or Compile returns [op.ErrShape] for a number n below 0.
func (b *Batch) Diff(x Value, axis, n int) Value {
	err := b.needs(x, 1)
	i := 0
	if err == nil {
		i, err = x.axis(axis)
	}
	if err == nil && n < 0 {
		err = fmt.Errorf("differences of order %d: expected 0 or more: %w", n, device.ErrShape)
	}
	if err != nil {
		return b.fail(fmt.Errorf("diff: %w", err))
	}
	for ; n > 0 && b.err == nil && x.Shape()[i] > 0; n-- {
		x = b.Sub(b.Slice(x, i, 1, op.End, 1), b.Slice(x, i, 0, -1, 1))
	}
	return x
}

// A PadMode says which elements of an axis [Batch.PadMode] puts before and after it.
type PadMode uint8

const (
	// PadReflect puts the elements next to the end, backwards, without the last one.
	PadReflect PadMode = iota
	// PadEdge puts copies of the last element.
	PadEdge
	// PadWrap puts the elements of the other end.
	PadWrap
)

// PadMode returns x with some of its own elements repeated before and after an axis. An
// axis below 0 counts from the end. [Batch.Pad] puts a constant there.
//
//	b.PadMode(x, 0, 2, 1, batch.PadReflect) // [1 2 3] to [3 2 1 2 3 2]
//	b.PadMode(x, 0, 2, 1, batch.PadEdge)    // to [1 1 1 2 3 3]
//	b.PadMode(x, 0, 2, 1, batch.PadWrap)    // to [2 3 1 2 3 1]
//
// An axis of n elements takes at most n-1 elements on each side with PadReflect, n with
// PadWrap, and any number with PadEdge unless n is 0. Execute or Compile returns [op.ErrShape]
// for other numbers.
func (b *Batch) PadMode(x Value, axis, before, after int, mode PadMode) Value {
	err := b.needs(x, 1)
	i := 0
	if err == nil {
		i, err = x.axis(axis)
	}
	if err == nil {
		err = mode.takes(x.Shape()[i], before, after)
	}
	if err != nil {
		return b.fail(fmt.Errorf("pad: %w", err))
	}
	n := x.Shape()[i]
	var ends [2]Value
	switch mode {
	case PadReflect:
		ends = [2]Value{b.Flip(b.Slice(x, i, 1, 1+before, 1), i), b.Flip(b.Slice(x, i, n-1-after, n-1, 1), i)}
	case PadEdge:
		ends = [2]Value{b.Repeat(b.Slice(x, i, 0, 1, 1), i, before), b.Repeat(b.Slice(x, i, n-1, n, 1), i, after)}
	case PadWrap:
		ends = [2]Value{b.Slice(x, i, n-before, n, 1), b.Slice(x, i, 0, after, 1)}
	}
	var parts []Value
	if before > 0 {
		parts = append(parts, ends[0])
	}
	parts = append(parts, x)
	if after > 0 {
		parts = append(parts, ends[1])
	}
	return b.Concat(i, parts...)
}

// takes checks the numbers of elements that are added around an axis of n.
func (m PadMode) takes(n, before, after int) error {
	most := math.MaxInt32
	switch {
	case m == PadReflect:
		most = max(n-1, 0)
	case m == PadWrap || n == 0:
		most = n
	case m > PadWrap:
		return fmt.Errorf("unknown mode %d: %w", m, device.ErrUnsupported)
	}
	if before < 0 || after < 0 || before > most || after > most {
		return fmt.Errorf("%d elements before and %d after an axis of %d: expected 0 to %d: %w", before, after, n, most, device.ErrShape)
	}
	return nil
}

// Trace returns the sums of the diagonals that [Batch.Diagonal] returns.
func (b *Batch) Trace(x Value, offset, axis1, axis2 int) Value {
	return b.Sum(b.Diagonal(x, offset, axis1, axis2), op.Axes(-1))
}
