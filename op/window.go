package op

import "slices"

var (
	// defDiagonal selects the elements of two axes whose indices differ by an offset.
	// [DiagonalOf] makes its parameters.
	defDiagonal = Operation{define: func() *definition {
		return add(&definition{name: "diagonal", class: Shaped, doc: "the elements of a diagonal of two axes, along a new last axis",
			formula: "x[..., i, ..., i + offset, ...]", inputs: []string{"x"}, arity: [2]int{1, 1},
			shapes: "any; gives the extents of x without the two axes, followed by the length of the diagonal, which is 0 for an offset beyond the axes",
			types:  anything, shape: diagonalShape, special: unchanged, flops: noFlops,
			view: func(l Layout, a *Attrs, in, out Shape, _ DType) (Layout, bool) {
				d, err := diagonalOf(a, in)
				if err != nil {
					return l, false
				}
				return l.diagonal(in, out, d)
			}})
	}}

	// defSlidingWindow selects windows of one axis at equal distances.
	// [SlidingWindowOf] makes its parameters.
	defSlidingWindow = Operation{define: func() *definition {
		return add(&definition{name: "sliding_window", class: Shaped, doc: "the windows of one axis, step elements apart, with the elements of a window along a new last axis",
			formula: "y[..., i, ..., j] = x[..., i*step + j*dilation, ...]", inputs: []string{"x"}, arity: [2]int{1, 1},
			shapes: "any; gives the extents of x with the number of windows in place of the axis, followed by the size of a window",
			types:  anything, shape: windowShape, special: unchanged, flops: noFlops,
			view: func(l Layout, a *Attrs, in, out Shape, _ DType) (Layout, bool) {
				w, err := windowOf(a, in)
				if err != nil {
					return l, false
				}
				return l.windows(in, out, w)
			}})
	}}
)

// DiagonalOf returns the parameters of [Diagonal]: offset is the index along axis2 minus
// the index along axis1. Axes below 0 count from the end.
func DiagonalOf(offset, axis1, axis2 int) Attrs { return Attrs{I: [8]int{offset, axis1, axis2}} }

// diagonal names the two axes of a diagonal and the index along each at which it starts.
type diagonal struct{ axes, start [2]int }

// diagonalOf reads what DiagonalOf wrote, for an operand of shape in.
func diagonalOf(a *Attrs, in Shape) (d diagonal, err error) {
	for i := range d.axes {
		if d.axes[i], err = axisOf(a.I[1+i], len(in)); err != nil {
			return d, err
		}
	}
	if d.axes[0] == d.axes[1] {
		return d, mismatch("the diagonal of axis %d with itself: name two axes of %v", d.axes[0], in)
	}
	// An offset beyond the axes gives no elements, like an offset at their end.
	offset := min(max(a.I[0], -in[d.axes[0]]), in[d.axes[1]])
	d.start = [2]int{max(-offset, 0), max(offset, 0)}
	return d, nil
}

func diagonalShape(a *Attrs, in []Shape) ([]Shape, error) {
	d, err := diagonalOf(a, in[0])
	if err != nil {
		return nil, err
	}
	out := Shape{}
	for i, n := range in[0] {
		if i != d.axes[0] && i != d.axes[1] {
			out = append(out, n)
		}
	}
	n := min(in[0][d.axes[0]]-d.start[0], in[0][d.axes[1]]-d.start[1])
	return []Shape{append(out, n)}, nil
}

// SlidingWindowOf returns the parameters of [SlidingWindow]: windows start step elements
// apart and have size elements that are dilation apart. An axis below 0 counts from the end.
func SlidingWindowOf(axis, size, step, dilation int) Attrs {
	return Attrs{I: [8]int{axis, size, step, dilation}}
}

// window describes count windows of an axis.
type window struct{ axis, size, step, dilation, count int }

// windowOf reads what SlidingWindowOf wrote, for an operand of shape in.
func windowOf(a *Attrs, in Shape) (w window, err error) {
	w = window{size: a.I[1], step: a.I[2], dilation: a.I[3]}
	if w.axis, err = axisOf(a.I[0], len(in)); err != nil {
		return w, err
	}
	n := in[w.axis]
	if w.size < 1 || w.step < 1 || w.dilation < 1 {
		return w, mismatch("windows of %d elements with dilation %d and step %d: all must be 1 or more", w.size, w.dilation, w.step)
	}
	if n == 0 || w.size > 1 && (n-1)/(w.size-1) < w.dilation {
		return w, mismatch("a window of %d elements with dilation %d is longer than axis %d of %v", w.size, w.dilation, w.axis, in)
	}
	w.count = (n-1-(w.size-1)*w.dilation)/w.step + 1
	return w, nil
}

func windowShape(a *Attrs, in []Shape) ([]Shape, error) {
	w, err := windowOf(a, in[0])
	if err != nil {
		return nil, err
	}
	out := append(slices.Clone(in[0]), w.size)
	out[w.axis] = w.count
	return []Shape{out}, nil
}

// single returns the only factor of an axis, or false if the axis has several factors or
// elements that are not in memory.
func (a *aligned) single(axis int) (Factor, bool) {
	switch fs := a.axes[axis]; len(fs) {
	case 0:
		return Factor{1, 0, 1, 0}, true
	case 1:
		return fs[0], !fs[0].windowed()
	}
	return Factor{}, false
}

// diagonal returns the layout of a diagonal, whose value has shape out.
func (l *Layout) diagonal(s, out Shape, d diagonal) (Layout, bool) {
	if n, err := out.Size(); err != nil || n == 0 {
		return Layout{Rank: 1}, err == nil
	}
	a, ok := l.align(s)
	if !ok {
		return Layout{}, false
	}
	b := aligned{off: a.off, fill: a.fill, shape: out}
	step, k := 0, 0
	for i := range s {
		at := slices.Index(d.axes[:], i)
		if at < 0 {
			b.axes[k] = a.axes[i]
			k++
			continue
		}
		f, ok := a.single(i)
		if !ok {
			return Layout{}, false
		}
		b.off += d.start[at] * f.Stride
		step += f.Stride
	}
	b.axes[k] = []Factor{{out[k], 0, out[k], step}}
	return b.layout()
}

// windows returns the layout of windows, whose value has shape out.
func (l *Layout) windows(s, out Shape, w window) (Layout, bool) {
	if n, err := out.Size(); err != nil || n == 0 {
		return Layout{Rank: 1}, err == nil
	}
	a, ok := l.align(s)
	if !ok || len(out) > MaxRank {
		return Layout{}, false
	}
	f, ok := a.single(w.axis)
	if !ok {
		return Layout{}, false
	}
	b := aligned{off: a.off, fill: a.fill, shape: out, axes: a.axes}
	b.axes[w.axis] = []Factor{{w.count, 0, w.count, f.Stride * w.step}}
	b.axes[len(s)] = []Factor{{w.size, 0, w.size, f.Stride * w.dilation}}
	return b.layout()
}
