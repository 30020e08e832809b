package batch

import (
	"math"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// window describes how a window moves along one axis of x: its size, its dilation, its stride, and
// the padding before and after. Extra padding at the end makes the last window complete.
type window struct {
	axis, n                int // the axis of x and its extent
	size, dilation, stride int
	before, after, extra   int
	count                  int // number of windows
}

// extent returns the extent of a window including the elements that dilation skips.
func (w *window) extent() int { return (w.size-1)*w.dilation + 1 }

// windowing has the parameters of windows that several option types share.
type windowing struct {
	size, stride, pad, padAfter, dilation []int
	same                                  op.Same
	ceil                                  bool
}

// windows returns the windows along the axes of x [n c ...], or records an error.
func (b *Batch) windows(name string, x Value, o windowing) []window {
	s := x.Shape()
	list, err := o.over(s)
	if err != "" {
		b.refuse(name, []Value{x}, "%s: windows %v, strides %v, pads %v and %v, dilations %v: %w", err, o.size, o.stride, o.pad, o.padAfter, o.dilation, device.ErrShape)
		return nil
	}
	return list
}

// over returns the windows along the axes of shape s except the first two, or an error message.
func (o *windowing) over(s op.Shape) ([]window, string) {
	axes := len(s) - 2
	if axes < 1 || axes > 3 {
		return nil, "the operand has one, two or three axes behind the first two"
	}
	size, stride, pad := spread(o.size, axes, 0), spread(o.stride, axes, 1), spread(o.pad, axes, 0)
	after, dilation := pad, spread(o.dilation, axes, 1)
	if o.padAfter != nil {
		after = spread(o.padAfter, axes, 0)
	}
	if size == nil || stride == nil || pad == nil || after == nil || dilation == nil {
		return nil, "parameters must have one number, or one for each spatial axis"
	}
	list := make([]window, axes)
	for i := range list {
		w := window{axis: 2 + i, n: s[2+i], size: size[i], stride: stride[i], dilation: dilation[i], before: pad[i], after: after[i]}
		if err := w.place(o.same, o.ceil); err != "" {
			return nil, err
		}
		list[i] = w
	}
	return list, ""
}

// spread returns a list of n numbers: the given list, a single given number n times, or the default
// n times. It returns nil if the list has another length.
func spread(list []int, n, otherwise int) []int {
	all := make([]int, n)
	for i := range all {
		switch len(list) {
		case 0:
			all[i] = otherwise
		case 1:
			all[i] = list[0]
		case n:
			all[i] = list[i]
		default:
			return nil
		}
	}
	return all
}

// place computes the padding and the number of windows, or returns an error.
func (w *window) place(same op.Same, ceil bool) string {
	const most = math.MaxInt32 / 4 // so that sums of a few such numbers fit into 32 bits
	if w.size < 1 || w.stride < 1 || w.dilation < 1 || w.before < 0 || w.after < 0 || w.n < 1 {
		return "extents, windows, strides and dilations must be 1 or more, pads 0 or more"
	}
	if w.n > most || w.stride > most || w.before > most || w.after > most || int64(w.size-1)*int64(w.dilation) > most {
		return "parameters out of range"
	}
	if same != op.SameNone {
		total := max(0, (w.n-1)/w.stride*w.stride+w.extent()-w.n)
		w.before, w.after = total/2, total-total/2
		if same == op.SameLower {
			w.before, w.after = w.after, w.before
		}
	}
	room := w.before + w.n + w.after - w.extent()
	if room < 0 {
		return "a window is larger than the padded axis"
	}
	// Add one more window, if it begins before the padding at the end.
	if more := room % w.stride; ceil && more != 0 && room-more+w.stride < w.before+w.n {
		w.extra = w.stride - more
	}
	w.count = (room+w.extra)/w.stride + 1
	return ""
}

// part returns element k of all windows along the axis of x, which is already padded.
func (b *Batch) part(x Value, w *window, k int) Value {
	from := k * w.dilation
	return b.Slice(x, w.axis, from, from+(w.count-1)*w.stride+1, w.stride)
}

// padded returns x with the padding of windows, of the given value.
func (b *Batch) padded(x Value, list []window, value float32) Value {
	for _, w := range list {
		if w.before > 0 || w.after+w.extra > 0 {
			x = b.Pad(x, w.axis, w.before, w.after+w.extra, value)
		}
	}
	return x
}

// fold combines the elements of windows of x along one axis after the other. Padding has
// the given value.
func (b *Batch) fold(x Value, list []window, value float32, f func(x, y Value) Value) Value {
	for i := range list { // the last axis, in which elements are not adjacent, if the fewest elements are left
		w := &list[i]
		p := b.padded(x, list[i:i+1], value)
		x = b.part(p, w, 0)
		for k := 1; k < w.size; k++ {
			x = f(x, b.part(p, w, k))
		}
	}
	return x
}
