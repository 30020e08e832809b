package batch

import (
	"slices"

	"github.com/rayo-go/rayo/op"
)

// reduce records a reduction along axes. It permutes these axes to the end, as a view, and merges
// them to the rows that it reduces.
func (b *Batch) reduce(o *op.Operation, a op.Attrs, along []op.Along, in ...Value) Value {
	if len(along) == 0 || b.err != nil {
		return b.apply(o, a, in...)
	}
	if b.unusable() {
		return Value{}
	}
	d, err := op.OptionOf(along)
	if err != nil {
		return b.failOp(o, err, copyOf(in))
	}
	s := in[0].Shape()
	axes, others, err := d.Of(len(s))
	if err != nil {
		return b.failOp(o, err, copyOf(in))
	}
	if run := lastRun(axes); run > 0 && mergesItself(o, in[0].Type()) {
		first := b.reduce(o, a, []op.Along{op.Axes(axes[run:]...).KeepDims()}, in[0])
		y := b.reduce(o, a, []op.Along{op.Axes(axes[:run]...).KeepDims()}, first)
		if !d.Keeps() && b.err == nil {
			y = b.Squeeze(y, axes...)
		}
		return y
	}
	rows := make([]Value, len(in))
	for i, x := range in {
		if !x.Shape().Equal(s) {
			return b.apply(o, a, in...) // which reports the error
		}
		rows[i] = b.rows(x, axes, others)
	}
	y := b.apply(o, a.Rows(), rows...)
	if d.Keeps() && b.err == nil {
		kept := slices.Clone(s)
		for _, i := range axes {
			kept[i] = 1
		}
		y = b.Reshape(y, kept...)
	}
	return y
}

// lastRun returns the index in axes, which are in rising order, of the first one of the last run of
// neighbours. It is 0 if all axes are neighbours.
func lastRun(axes []int) int {
	at := len(axes) - 1
	for at > 0 && axes[at-1] == axes[at]-1 {
		at--
	}
	return max(at, 0)
}

// mergesItself reports whether a reduction along several axes is the same reduction along one of them
// after the others. Reductions along axes that are not neighbours need no copy then.
func mergesItself(o *op.Operation, t op.DType) bool {
	switch o {
	case op.Sum, op.Max, op.Min, op.Any, op.All:
		return t == op.F32 || t == op.I32 || t == op.U32 || t == op.Bool // 16-bit types would be rounded twice
	}
	return false
}

// alongRows records a row operation along axes.
func (b *Batch) alongRows(o *op.Operation, a op.Attrs, along []op.Along, x Value) Value {
	if axes := b.across(o, along, x); axes != (op.Along{}) {
		return b.softmaxAcross(o, axes, x)
	}
	rows, back := b.asRows(o, along, x)
	return back(b.apply(o, a, rows))
}

// across returns the axes of a softmax that [Batch.softmaxAcross] computes, or the zero Along. These are neighbouring axes
// before the last axis: a softmax of rows would first have to move their elements.
func (b *Batch) across(o *op.Operation, along []op.Along, x Value) op.Along {
	if o != op.Softmax && o != op.LogSoftmax || len(along) != 1 || !b.takes(o.Name(), x) || x.Type() != op.F32 {
		return op.Along{}
	}
	s := x.Shape()
	axes, others, err := along[0].Of(len(s))
	if err != nil || len(others) == 0 || others[len(others)-1] != len(s)-1 || slices.Contains(s, 0) {
		return op.Along{}
	}
	for i, axis := range axes {
		if axis != axes[0]+i { // reductions along axes that are not neighbours move elements too
			return op.Along{}
		}
	}
	outer, cols, inner := 1, 1, 1
	for i, n := range s {
		switch {
		case i < axes[0]:
			outer *= n
		case i <= axes[len(axes)-1]:
			cols *= n
		default:
			inner *= n
		}
	}
	if b.eng.Columns(o, outer, cols, inner) { // without moving elements
		return op.Along{}
	}
	return op.Axes(axes...).KeepDims()
}

// softmaxAcross records a softmax or its logarithm by reductions along axes.
func (b *Batch) softmaxAcross(o *op.Operation, axes op.Along, x Value) Value {
	y := b.Sub(x, b.Max(x, axes))
	e := b.Exp(y)
	if o == op.Softmax {
		return b.Div(e, b.Sum(e, axes))
	}
	return b.Sub(y, b.Log(b.Sum(e, axes)))
}

// asRows returns x with the axes as rows for a row operation, and a function that restores the axes
// of x in a result.
func (b *Batch) asRows(o *op.Operation, along []op.Along, x Value) (rows Value, back func(y Value) Value) {
	same := func(y Value) Value { return y }
	if len(along) == 0 || b.err != nil {
		return x, same
	}
	if b.unusable() {
		return Value{}, same
	}
	d, err := op.OptionOf(along)
	if err != nil {
		return b.failOp(o, err, []Value{x}), same
	}
	s := x.Shape()
	axes, others, err := d.Of(len(s))
	if err != nil {
		return b.failOp(o, err, []Value{x}), same
	}
	order := append(slices.Clone(others), axes...)
	inverse, moved := make([]int, len(order)), make([]int, len(order))
	for i, k := range order {
		inverse[k], moved[i] = i, s[k]
	}
	return b.rows(x, axes, others), func(y Value) Value {
		return b.Permute(b.Reshape(y, moved...), inverse...)
	}
}

// rows returns x with some axes merged to a last axis.
func (b *Batch) rows(x Value, axes, others []int) Value {
	s := x.Shape()
	if s == nil {
		return x // not a value of this recording: the check that follows reports it
	}
	order := append(slices.Clone(others), axes...)
	if !slices.IsSorted(order) {
		x = b.Permute(x, order...)
	}
	if len(axes) == 1 {
		return x
	}
	shape, n := op.Shape{}, 1
	for _, i := range others {
		shape = append(shape, s[i])
	}
	for _, i := range axes {
		n *= s[i]
	}
	return b.Reshape(x, append(shape, n)...)
}

// product records a product of matrices whose leading extents broadcast by NumPy's rule.
func (b *Batch) product(o *op.Operation, a op.Attrs, in ...Value) Value {
	in = given(o, in)
	if b.err != nil || !b.own(in[0]) || !b.own(in[1]) {
		return b.apply(o, a, in...)
	}
	x, y := in[0].Shape(), in[1].Shape()
	if len(x) < 2 || len(y) < 2 || len(y) == 2 || x[:len(x)-2].Equal(y[:len(y)-2]) {
		return b.apply(o, a, in...)
	}
	lead, err := op.Broadcast(x[:len(x)-2], y[:len(y)-2])
	if err != nil {
		return b.failOp(o, err, copyOf(in))
	}
	spread := func(v Value, s op.Shape) Value {
		if s[:len(s)-2].Equal(lead) {
			return v
		}
		return b.Expand(v, append(slices.Clone(lead), s[len(s)-2:]...)...)
	}
	return b.apply(o, a, append([]Value{spread(in[0], x), spread(in[1], y)}, in[2:]...)...)
}
