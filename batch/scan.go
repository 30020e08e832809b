package batch

import (
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/op"
)

// scan records a scan along the given axes, from either end.
func (b *Batch) scan(o *op.Operation, opts []op.ScanOpts, x Value) Value {
	if len(opts) == 0 || b.err != nil {
		return b.apply(o, op.Attrs{}, x)
	}
	if !b.takes(o.Name(), x) {
		return Value{}
	}
	s, err := op.OptionOf(opts)
	if err != nil {
		return b.failOp(o, err, []Value{x})
	}
	var along []op.Along
	if s.Along != (op.Along{}) {
		along = append(along, s.Along)
	}
	rows, back := b.asRows(o, along, x)
	if b.err != nil || len(rows.Shape()) == 0 {
		return b.apply(o, op.Attrs{}, rows)
	}
	if s.Reverse {
		rows = b.Flip(rows, -1)
	}
	if s.Exclusive {
		rows = b.later(o, rows)
	}
	y := b.apply(o, op.Attrs{}, rows)
	if s.Reverse {
		y = b.Flip(y, -1)
	}
	return back(y)
}

// later returns rows shifted by one element: the last element is dropped, and the first becomes the
// scan's result for no elements.
func (b *Batch) later(o *op.Operation, x Value) Value {
	shape := x.Shape()
	last := len(shape) - 1
	if shape[last] == 0 {
		return x
	}
	if _, err := o.Types(&op.Attrs{}, []op.DType{x.Type()}); err != nil {
		return x // the scan reports the unsupported type
	}
	// float32 cannot represent the greatest integers. It rounds them up beyond the type, and Pad
	// saturates to the greatest integer.
	first := float32(irhook.Reducer(o, uint8(x.Type())).Empty())
	return b.Slice(b.Pad(x, last, 1, 0, first), last, 0, shape[last], 1)
}

// Std records the standard deviation, the square root of [Batch.Var]: of all elements, or along
// axes. A DDOF of 1 gives the estimate for the population from a sample:
//
//	spread := b.Std(x, op.VarOpts{DDOF: 1, Along: op.Axes(0).KeepDims()})
//
// The result is NaN if an element is NaN, or if there are no more than DDOF elements.
//
// Execute or Compile returns [op.ErrUnsupported] for types that are not floating, and
// [op.ErrShape] for axes that x lacks. The error is half that of the variance, and one unit in
// the last place.
func (b *Batch) Std(x Value, opts ...op.VarOpts) Value { return b.Sqrt(b.Var(x, opts...)) }
