package op

import (
	"encoding/binary"
	"github.com/rayo-go/rayo/internal/irhook"
	"math"
	"slices"
)

// Views show the elements of their operand in another shape or order, some of
// them, or some several times: they change its [Layout] and compute nothing.
var (
	// defReshape gives the elements another shape. [ReshapeTo] makes its parameters.
	defReshape = Operation{define: func() *definition {
		return add(&definition{name: "reshape", class: Shaped, doc: "the same elements in another shape; no element is moved",
			formula: "x", inputs: []string{"x"}, arity: [2]int{1, 1},
			shapes: "any; gives the requested shape, in which one extent may be -1: it is computed from the others",
			types:  anything, shape: reshapeShape, special: unchanged, flops: noFlops,
			view: func(l Layout, _ *Attrs, _, _ Shape, _ DType) (Layout, bool) { return l, true }})
	}}

	// defTranspose exchanges the last two axes.
	defTranspose = Operation{define: func() *definition {
		return add(&definition{name: "transpose", class: Shaped, selfTest: &irhook.SelfTest{Shapes: [][]int{{5, 7}}}, doc: "the last two axes exchanged",
			formula: "x[..., j, i]", inputs: []string{"x"}, arity: [2]int{1, 1}, shapes: "x [... m n]; gives [... n m]",
			types: anything, shape: transposeShape, special: unchanged, flops: noFlops,
			view: func(l Layout, _ *Attrs, in, _ Shape, _ DType) (Layout, bool) {
				order := make([]int, len(in))
				for i := range order {
					order[i] = i
				}
				n := len(in)
				order[n-2], order[n-1] = n-1, n-2
				return l.permute(in, order)
			}})
	}}

	// defPermute puts the axes in another order. [PermuteTo] makes its parameters.
	defPermute = Operation{define: func() *definition {
		return add(&definition{name: "permute", class: Shaped, selfTest: &irhook.SelfTest{Attrs: Attrs{I: [8]int{3, 2, 1}}, Shapes: [][]int{{37, 3, 33}}}, doc: "the axes in another order",
			formula: "axis i of the result is axis order[i] of x", inputs: []string{"x"}, arity: [2]int{1, 1},
			shapes: "any; gives the extents of x in the given order, which names each axis once; negative numbers count from the last axis",
			types:  anything, shape: permuteShape, special: unchanged, flops: noFlops,
			view: func(l Layout, a *Attrs, in, _ Shape, _ DType) (Layout, bool) {
				order, err := axesOf(a, len(in))
				if err != nil {
					return l, false
				}
				return l.permute(in, order)
			}})
	}}

	// defSlice selects elements of one axis at equal distances. [SliceTo] makes its
	// parameters.
	defSlice = Operation{define: func() *definition {
		return add(&definition{name: "slice", class: Shaped, doc: "the elements start, start+step and so on of one axis, up to but not including stop",
			formula: "x[..., start:stop:step, ...]", inputs: []string{"x"}, arity: [2]int{1, 1},
			shapes: "any; gives the shape of x except along the axis. Negative bounds count from the end, and bounds outside the axis are limited to it; with a negative step the elements are in the opposite order",
			types:  anything, shape: sliceShape, special: unchanged, flops: noFlops,
			view: func(l Layout, a *Attrs, in, _ Shape, _ DType) (Layout, bool) {
				s, err := sliceOf(a, in)
				if err != nil {
					return l, false
				}
				return l.slice(in, s.axis, s.start, s.count, s.step)
			}})
	}}

	// defFlip reverses the order of the elements along axes. [FlipOf] makes its parameters.
	defFlip = Operation{define: func() *definition {
		return add(&definition{name: "flip", class: Shaped, doc: "the elements of some axes in the opposite order",
			formula: "x[..., n-1-i, ...]", inputs: []string{"x"}, arity: [2]int{1, 1},
			shapes: "any; gives the shape of x. Without axes, all axes are flipped",
			types:  anything, shape: flipShape, special: unchanged, flops: noFlops,
			view: func(l Layout, a *Attrs, in, _ Shape, _ DType) (Layout, bool) {
				axes, err := flipAxes(a, len(in))
				ok := err == nil
				for _, i := range axes {
					if ok && in[i] > 0 {
						l, ok = l.slice(in, i, in[i]-1, in[i], -1)
					}
				}
				return l, ok
			}})
	}}

	// defExpand repeats axes of extent 1. [ExpandTo] makes its parameters.
	defExpand = Operation{define: func() *definition {
		return add(&definition{name: "expand", class: Shaped, doc: "the operand repeated along axes that it lacks or that have extent 1",
			formula: "x, spread over the shape", inputs: []string{"x"}, arity: [2]int{1, 1},
			shapes: "any; gives the requested shape. x is aligned with its last axes, and each extent of x must be 1 or equal to the requested extent; -1 keeps the extent of x",
			types:  anything, shape: expandShape, special: unchanged, flops: noFlops,
			view: func(l Layout, _ *Attrs, in, out Shape, _ DType) (Layout, bool) { return l.expand(in, out) }})
	}}

	// defPad adds elements of a constant before and after the elements of one axis. [PadOf]
	// makes its parameters.
	defPad = Operation{define: func() *definition {
		return add(&definition{name: "pad", class: Shaped, doc: "the operand with a constant before and after the elements of one axis",
			formula: "value, x and value along the axis", inputs: []string{"x"}, arity: [2]int{1, 1},
			shapes: "any; gives the shape of x, with the axis longer by before + after, which are 0 or more",
			types:  anything, shape: padShape, special: "Values are copied unchanged; the constant is rounded to the element type.", flops: noFlops,
			view: func(l Layout, a *Attrs, in, _ Shape, t DType) (Layout, bool) {
				axis, err := axisOf(a.I[0], len(in))
				if err != nil {
					return l, false
				}
				return l.pad(in, axis, a.I[1], a.I[2], t.bits(float64(a.Float(0))))
			}})
	}}

	// defConcat puts operands one after the other along an axis. [ConcatAlong] makes
	// its parameters.
	defConcat = Operation{define: func() *definition {
		return add(&definition{name: "concat", class: Shaped, selfTest: &irhook.SelfTest{Attrs: ConcatAlong(1), Shapes: [][]int{{3, 4}, {3, 5}}}, doc: "the operands one after the other along an axis",
			formula: "x0, then x1, and so on, along the axis", inputs: []string{"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"}, arity: [2]int{1, MaxInputs},
			shapes: "operands of the same extents except along the axis; gives these extents, with their sum along the axis",
			types:  anything, shape: concatShape, ref: concatReference, special: unchanged, flops: noFlops})
	}}
)

const unchanged = "Values are copied unchanged."

func noFlops(*Attrs, []Shape, []Shape) float64 { return 0 }

// viewOf returns the layout of the result of a view, of shape out, for an operand of
// layout l and shape in. It returns false if no layout can describe the result.
type viewOf func(l Layout, a *Attrs, in, out Shape, t DType) (Layout, bool)

// View reports whether the operation only changes the layout of its operand and computes nothing:
// see [Operation.Layout].
func (o *Operation) View() bool { return o.def().view != nil }

// Layout returns the layout of the result of a view, of shape out, for an
// operand of shape in, of type t and of layout l. It returns false if no layout
// can describe the result: then the operand must be copied first.
func (o *Operation) Layout(a *Attrs, l Layout, in, out Shape, t DType) (Layout, bool) {
	return o.def().view(l, a, in, out, t)
}

// look is the reference of a view.
func (o *Operation) look(a *Attrs, x, y *Array, t DType) {
	l, ok := o.def().view(RowMajor(len(x.Data)), a, x.Shape, y.Shape, t)
	if !ok {
		panic("BUG: " + o.def().name + " has no layout for a contiguous operand")
	}
	for i := range y.Data {
		if at, in := l.At(i); in {
			y.Data[i] = x.Data[at]
		} else {
			y.Data[i] = t.Round(float64(a.Float(0)))
		}
	}
}

// bits returns v as the bits of an element of type d.
func (d DType) bits(v float64) uint32 {
	b := make([]byte, 4)
	d.PutFloat64(b, 0, v)
	switch d.Size() {
	case 1:
		return uint32(b[0])
	case 2:
		return uint32(binary.NativeEndian.Uint16(b))
	}
	return binary.NativeEndian.Uint32(b)
}

// number returns the value of the bits of an element of type d.
func (d DType) number(bits uint32) float64 {
	switch d.Size() {
	case 1:
		return d.scalar([]byte{byte(bits)}, 0)
	case 2:
		return d.scalar(binary.NativeEndian.AppendUint16(nil, uint16(bits)), 0)
	}
	return d.scalar(binary.NativeEndian.AppendUint32(nil, bits), 0)
}

// axisOf returns the index of one of rank axes, or an ErrShape if it is out of range. An axis
// below 0 counts from the end.
func axisOf(axis, rank int) (int, error) {
	if axis < -rank || axis >= rank {
		return 0, mismatch("axis %d is out of range for %d axes", axis, rank)
	}
	return (axis + rank) % rank, nil
}

// withAxes returns Attrs that hold a list of axes, which may be below 0.
func withAxes(axes []int) (Attrs, error) {
	var a Attrs
	if len(axes) > len(a.I) {
		return a, mismatch("%d axes: at most %d are supported", len(axes), len(a.I))
	}
	for i, x := range axes {
		if a.I[i] = x; x >= 0 {
			a.I[i]++ // 0 ends the list
		}
	}
	return a, nil
}

// axesOf reads what withAxes wrote, for an operand of rank axes. An axis that is given twice is an
// ErrShape.
func axesOf(a *Attrs, rank int) ([]int, error) {
	var axes []int
	for _, x := range a.I {
		if x == 0 {
			break
		}
		if x > 0 {
			x--
		}
		i, err := axisOf(x, rank)
		if err != nil {
			return nil, err
		}
		if slices.Contains(axes, i) {
			return nil, mismatch("axis %d is given twice", i)
		}
		axes = append(axes, i)
	}
	return axes, nil
}

// PermuteTo returns the parameters of [Permute]: axis i of the result is axis order[i]
// of the operand. Axes below 0 count from the end.
func PermuteTo(order ...int) (Attrs, error) { return withAxes(order) }

func permuteShape(a *Attrs, in []Shape) ([]Shape, error) {
	order, err := axesOf(a, len(in[0]))
	if err != nil {
		return nil, err
	}
	if len(order) != len(in[0]) {
		return nil, mismatch("order %v for %v: expected each of the %d axes once", order, in[0], len(in[0]))
	}
	out := Shape{}
	for _, i := range order {
		out = append(out, in[0][i])
	}
	return []Shape{out}, nil
}

// End is the stop of a [Slice] that reaches to the end of the axis, in the direction of
// its step.
const End = math.MaxInt

// SliceTo returns the parameters of [Slice]. An axis or a bound below 0 counts
// from the end.
func SliceTo(axis, start, stop, step int) Attrs { return Attrs{I: [8]int{axis, start, stop, step}} }

// slice describes count elements of an axis.
type slice struct{ axis, start, count, step int }

// sliceOf reads what SliceTo wrote, for an operand of shape in.
func sliceOf(a *Attrs, in Shape) (slice, error) {
	s := slice{start: a.I[1], step: a.I[3]}
	var err error
	if s.axis, err = axisOf(a.I[0], len(in)); err != nil {
		return s, err
	}
	if s.step == 0 || s.step == math.MinInt {
		return s, mismatch("slice of %v with step %d: the step must not be 0 or the least int", in, s.step)
	}
	n, stop := in[s.axis], a.I[2]
	first, last := 0, n // the range of bounds
	if s.step < 0 {
		first, last = -1, n-1
	}
	bound := func(v int) int {
		if v < 0 {
			v += n
		}
		return min(max(v, first), last)
	}
	s.start = bound(s.start)
	switch {
	case stop != End:
		stop = bound(stop)
	case s.step < 0:
		stop = first
	default:
		stop = last
	}
	if s.step > 0 && stop > s.start {
		s.count = (stop-s.start-1)/s.step + 1
	} else if s.step < 0 && stop < s.start {
		s.count = (s.start-stop-1)/-s.step + 1
	}
	return s, nil
}

func sliceShape(a *Attrs, in []Shape) ([]Shape, error) {
	s, err := sliceOf(a, in[0])
	if err != nil {
		return nil, err
	}
	out := slices.Clone(in[0])
	out[s.axis] = s.count
	return []Shape{out}, nil
}

// FlipOf returns the parameters of [Flip]. Axes below 0 count from the end. Without
// arguments it means all axes.
func FlipOf(axes ...int) (Attrs, error) { return withAxes(axes) }

// flipAxes reads what FlipOf wrote.
func flipAxes(a *Attrs, rank int) ([]int, error) {
	axes, err := axesOf(a, rank)
	if err == nil && len(axes) == 0 {
		for i := range rank {
			axes = append(axes, i)
		}
	}
	return axes, err
}

func flipShape(a *Attrs, in []Shape) ([]Shape, error) {
	_, err := axesOf(a, len(in[0]))
	return in[:1:1], err
}

// ExpandTo returns the parameters of [Expand]: the shape of the result, in which
// -1 means the extent of the operand.
func ExpandTo(s ...int) (Attrs, error) { return ReshapeTo(s...) }

func expandShape(a *Attrs, in []Shape) ([]Shape, error) {
	out := Shape{}
	for _, v := range a.I {
		if v == 0 {
			break
		}
		out = append(out, v-1)
	}
	if len(out) < len(in[0]) {
		return nil, mismatch("%v does not broadcast to %d axes", in[0], len(out))
	}
	lead := len(out) - len(in[0])
	for i := range out {
		if out[i] >= 0 {
			continue
		}
		if i < lead {
			return nil, mismatch("%v has no extent for axis %d of %d: -1 stands only for extents of the operand", in[0], i, len(out))
		}
		out[i] = in[0][i-lead]
	}
	return []Shape{out}, in[0].spreads(out)
}

// PadOf returns the parameters of [Pad]: the numbers of fill elements before and after the elements
// of an axis. An axis below 0 counts from the end.
func PadOf(axis, before, after int, value float32) Attrs {
	return Attrs{I: [8]int{axis, before, after}, F: [4]uint32{math.Float32bits(value)}}
}

func padShape(a *Attrs, in []Shape) ([]Shape, error) {
	axis, err := axisOf(a.I[0], len(in[0]))
	if err != nil {
		return nil, err
	}
	n, before, after := in[0][axis], a.I[1], a.I[2]
	if before < 0 || after < 0 {
		return nil, mismatch("padding of %d elements before and %d after axis %d: expected 0 or more; take a slice to remove elements", before, after, axis)
	}
	if before > math.MaxInt/4 || after > math.MaxInt/4 || n > math.MaxInt/4 {
		return nil, mismatch("padding of %d elements before and %d after %v overflows an int", before, after, in[0])
	}
	out := slices.Clone(in[0])
	out[axis] += before + after
	return []Shape{out}, nil
}

// ConcatAlong returns the parameters of [Concat]. An axis below 0 counts from
// the end.
func ConcatAlong(axis int) Attrs { return Attrs{I: [8]int{axis}} }

// ConcatOf returns the axis of a [Concat] over operands of the given shapes, or
// an ErrShape.
func ConcatOf(a *Attrs, in []Shape) (axis int, err error) {
	return axisOf(a.I[0], len(in[0]))
}

func concatShape(a *Attrs, in []Shape) ([]Shape, error) {
	axis, err := ConcatOf(a, in)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(in[0])
	for i, s := range in[1:] {
		if s == nil {
			return nil, mismatch("operand %d is missing", i+1)
		}
		same := len(s) == len(out)
		for k := range out {
			same = same && (k == axis || s[k] == out[k])
		}
		if !same {
			return nil, mismatch("concat of %v and %v along axis %d: all other extents must be equal", in[0], s, axis)
		}
		if out[axis] > math.MaxInt/4 || s[axis] > math.MaxInt/4 {
			return nil, mismatch("concat of %v along axis %d overflows an int", texts(in), axis)
		}
		out[axis] += s[axis]
	}
	return []Shape{out}, nil
}

func concatReference(a *Attrs, in, out []*Array) {
	axis, err := axisOf(a.I[0], len(out[0].Shape))
	if err != nil {
		return // the shape rule has refused it
	}
	inner := int(elements(out[0].Shape[axis+1:]))
	row, at := out[0].Shape[axis]*inner, 0
	for _, x := range in {
		if x == nil {
			continue
		}
		n := x.Shape[axis] * inner
		for i, v := range x.Data {
			out[0].Data[i/n*row+at+i%n] = v
		}
		at += n
	}
}

// ReshapeTo returns the parameters of [Reshape]. One extent may be -1.
func ReshapeTo(s ...int) (Attrs, error) {
	var a Attrs
	if len(s) > len(a.I) {
		return a, mismatch("the shape has %d extents: at most %d are supported", len(s), len(a.I))
	}
	for i, d := range s {
		if d < -1 {
			return a, mismatch("negative extent in %v", Shape(s))
		}
		// 0 ends the list of extents, so that the zero Attrs describe a scalar.
		a.I[i] = d + 1
		if d == -1 {
			a.I[i] = -1
		}
	}
	return a, nil
}

func anything(_ *Attrs, in []DType) ([]DType, error) {
	return same(in, func(d DType) bool { return d.Size() > 0 })
}

func reshapeShape(a *Attrs, in []Shape) ([]Shape, error) {
	n, err := in[0].Size()
	if err != nil {
		return nil, err
	}
	out := Shape{}
	infer := -1
	for i, v := range a.I {
		switch {
		case v == 0:
			for _, w := range a.I[i:] {
				if w != 0 {
					return nil, mismatch("malformed extents %v", a.I[:])
				}
			}
		case v > 0:
			out = append(out, v-1)
			continue
		case v == -1 && infer < 0:
			infer = i
			out = append(out, 1)
			continue
		default:
			return nil, mismatch("only one extent may be -1, and no other may be negative")
		}
		break
	}
	m, err := out.Size()
	if err != nil {
		return nil, err
	}
	if infer >= 0 {
		if m == 0 || n%m != 0 {
			out[infer] = -1
			return nil, mismatch("%v has %d elements, and the other extents of the shape %v hold %d: the extent -1 cannot be computed", in[0], n, out, m)
		}
		out[infer], m = n/m, n
	}
	if m != n {
		return nil, mismatch("%v has %d elements, but the shape %v has %d", in[0], n, out, m)
	}
	return []Shape{out}, nil
}

func transposeShape(_ *Attrs, in []Shape) ([]Shape, error) {
	n := len(in[0])
	if n < 2 {
		return nil, mismatch("%v has fewer than two axes", in[0])
	}
	out := append(Shape{}, in[0]...)
	out[n-2], out[n-1] = out[n-1], out[n-2]
	return []Shape{out}, nil
}
