package batch

import (
	"maps"
	"math"
	"slices"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// convolving checks the operands and the options of a method, and returns how the
// windows w [a b k...] move over x [n c ...].
func (b *Batch) convolving(name string, x, w, bias Value, opts []op.ConvOpts) (o op.ConvOpts, list []window) {
	in := []Value{x, w}
	if bias.given() {
		in = append(in, bias)
	}
	if !b.takes(name, in...) {
		return o, nil
	}
	o, err := op.OptionOf(opts)
	if err != nil {
		b.refuse(name, in, "%w", err)
		return o, nil
	}
	if o.Groups == 0 {
		o.Groups = 1
	}
	s, t := x.Shape(), w.Shape()
	if len(s) != len(t) || len(s) < 3 || len(s) > 5 || o.Groups < 1 || s[1]%o.Groups != 0 || t[0]%o.Groups != 0 {
		b.refuse(name, in, "operand %v, windows %v, %d groups: expected the same one, two or three spatial axes in both, and a multiple of groups channels: %w", s, t, o.Groups, device.ErrShape)
		return o, nil
	}
	return o, b.windows(name, x, windowing{t[2:], o.Stride, o.Pad, o.PadAfter, o.Dilation, o.Same, false})
}

// Conv returns the correlation of x [n c ...] with the windows w [o c/groups ...], plus
// bias [o]. Neural networks call it convolution. The result is [n o ...]. x has one, two or
// three spatial axes. None means no bias.
//
//	y := b.Conv(signal, w, batch.None, op.ConvOpts{Same: op.SameUpper})
//
// Execute or Compile returns [op.ErrShape] for other ranks or channels, a window larger than
// the padded axis, or an option out of range. The accuracy is as for [Batch.Conv2D].
func (b *Batch) Conv(x, w, bias Value, opts ...op.ConvOpts) Value {
	o, list := b.convolving("conv", x, w, bias, opts)
	if list == nil {
		return Value{}
	}
	switch len(list) {
	case 1:
		flat := window{axis: 2, n: 1, size: 1, dilation: 1, stride: 1, count: 1}
		list[0].axis = 3
		return b.Squeeze(b.conv2D(b.Unsqueeze(x, 2), b.Unsqueeze(w, 2), bias, []window{flat, list[0]}, o.Groups), 2)
	case 2:
		return b.conv2D(x, w, bias, list, o.Groups)
	}
	return b.conv3D(x, w, bias, list, o.Groups)
}

// conv2D records a convolution with padding that may differ on both sides.
func (b *Batch) conv2D(x, w, bias Value, list []window, groups int) Value {
	o := op.Conv2DOpts{Groups: groups}
	for i, s := range list {
		o.Stride[i], o.Dilation[i] = s.stride, s.dilation
		if s.before == s.after {
			o.Pad[i] = s.before
		} else {
			x = b.Pad(x, 2+i, s.before, s.after, 0)
		}
	}
	return b.Conv2D(x, w, bias, o)
}

// conv3D merges the first spatial axis into the others: its windows become separate images, whose
// channels are the elements of a window.
func (b *Batch) conv3D(x, w, bias Value, list []window, groups int) Value {
	s, t, depth := x.Shape(), w.Shape(), &list[0]
	padded := b.padded(x, list[:1], 0)
	parts := make([]Value, depth.size)
	for k := range parts {
		parts[k] = b.Unsqueeze(b.part(padded, depth, k), 2) // [n c 1 d h w]
	}
	images := b.Permute(b.Concat(2, parts...), 0, 3, 1, 2, 4, 5) // [n d c k h w]
	images = b.Reshape(images, s[0]*depth.count, s[1]*depth.size, s[3], s[4])
	windows := b.Reshape(w, t[0], t[1]*t[2], t[3], t[4])
	y := b.conv2D(images, windows, bias, list[1:], groups)
	y = b.Reshape(y, s[0], depth.count, t[0], list[1].count, list[2].count)
	return b.Permute(y, 0, 2, 1, 3, 4)
}

// ConvTranspose returns the transposed convolution of x [n c ...] with the windows w [c o/groups
// ...], plus bias [o]. It multiplies each element of x by the window, and adds the products to the
// elements that a [Batch.Conv] of the result, with the same options, would read for that element. A
// spatial axis of d elements gets stride·(d-1) + dilation·(k-1) + 1 + OutPad elements less the
// padding, and stride·d with Same. The result is [n o ...]. None means no bias.
//
//	twice := b.ConvTranspose(x, w, batch.None, op.ConvOpts{Stride: []int{2}}) // with windows of 2
//
// Execute or Compile returns [op.ErrShape] for other ranks or channels, a result without
// elements, or an option out of range.
func (b *Batch) ConvTranspose(x, w, bias Value, opts ...op.ConvOpts) Value {
	const name = "conv_transpose"
	in := []Value{x, w}
	if bias.given() {
		in = append(in, bias)
	}
	if !b.takes(name, in...) {
		return Value{}
	}
	o, err := op.OptionOf(opts)
	if err != nil {
		return b.refuse(name, in, "%w", err)
	}
	groups := o.Groups
	if groups == 0 {
		groups = 1
	}
	s, t := x.Shape(), w.Shape()
	if len(s) != len(t) || len(s) < 3 || len(s) > 5 || s[1] != t[0] || groups < 1 || s[1]%groups != 0 {
		return b.refuse(name, in, "operand %v, windows %v, %d groups: expected the same channels and the same one, two or three spatial axes in both, and a multiple of groups channels: %w", s, t, groups, device.ErrShape)
	}
	list, why := transposed(s[2:], t[2:], &o)
	if why == "" && !bounded(append([]int{s[0], groups, t[1]}, sizes(list)...)) {
		why = "more elements than a value has"
	}
	if why != "" {
		return b.refuse(name, in, "%s: strides %v, pads %v and %v, dilations %v, %v more at the end: %w", why, o.Stride, o.Pad, o.PadAfter, o.Dilation, o.OutPad, device.ErrShape)
	}
	rows := b.Reshape(x, s[0], groups, s[1]/groups, product(s[2:]))
	weights := b.Reshape(w, groups, s[1]/groups, product(t[1:]))
	columns := b.MatMul(weights, rows, None, op.MatMulOpts{TransA: true})
	y := b.overlapAdd(b.Reshape(columns, slices.Concat([]int{s[0], groups * t[1]}, t[2:], s[2:])...), list)
	if bias.given() && b.err == nil {
		y = b.Add(y, b.channels(name, y, bias))
	}
	return y
}

// sizes returns the extents of the axes along which windows move.
func sizes(list []window) []int {
	var s []int
	for _, w := range list {
		s = append(s, w.n)
	}
	return s
}

// transposed returns how the windows of a transposed convolution, one for each element of the
// spatial extents, move over its result, or an error.
func transposed(spatial, size []int, o *op.ConvOpts) ([]window, string) {
	n := len(spatial)
	stride, pad, dilation, more := spread(o.Stride, n, 1), spread(o.Pad, n, 0), spread(o.Dilation, n, 1), spread(o.OutPad, n, 0)
	after := pad
	if o.PadAfter != nil {
		after = spread(o.PadAfter, n, 0)
	}
	if stride == nil || pad == nil || after == nil || dilation == nil || more == nil {
		return nil, "parameters must have one number, or one for each spatial axis"
	}
	const most = math.MaxInt32 / 4
	list := make([]window, n)
	for i := range list {
		w := window{axis: 2 + i, size: size[i], stride: stride[i], dilation: dilation[i], before: pad[i], after: after[i], count: spatial[i]}
		if w.size < 1 || w.stride < 1 || w.dilation < 1 || w.before < 0 || w.after < 0 || more[i] < 0 || w.count < 1 {
			return nil, "extents, windows, strides and dilations must be 1 or more, pads 0 or more"
		}
		full := int64(w.stride)*int64(w.count-1) + int64(w.dilation)*int64(w.size-1) + 1 + int64(more[i])
		if w.stride > most || w.dilation > most || w.before > most || w.after > most || more[i] > most || full > most {
			return nil, "parameters out of range"
		}
		w.n = int(full) - w.before - w.after
		if o.Same != op.SameNone {
			w.n = w.count * w.stride
			total := max(0, int(full)-w.n)
			if w.before = total / 2; o.Same == op.SameLower {
				w.before = total - total/2
			}
		}
		if w.n < 1 {
			return nil, "the result has no elements"
		}
		list[i] = w
	}
	return list, ""
}

// overlapAdd returns arrays [n c ...] with the sums of the windows x [n c k... o...] that cover
// each element: windows have k elements and begin at o places. It computes the places of one phase,
// which are a stride apart, together, and interleaves the phases.
func (b *Batch) overlapAdd(x Value, list []window) Value {
	if b.err == nil && extent(x.Shape()) == 0 {
		return b.Reshape(x, slices.Concat(x.Shape()[:2], sizes(list))...)
	}
	axis := len(list) + 1 // axis of the positions, after the first axis of k was removed
	for i := range list {
		w := &list[i]
		if b.err != nil {
			return Value{}
		}
		stride := min(w.stride, w.before+w.n) // windows that begin after the end do not contribute
		each := (w.before+w.n-1)/stride + 1   // number of positions of each phase
		phases := make(map[int]Value)
		for k := range w.size {
			phase, shift := k*w.dilation%stride, k*w.dilation/stride
			if shift >= each {
				continue // beyond the end
			}
			count := min(w.count, each-shift)
			part := b.Slice(b.Squeeze(b.Slice(x, 2, k, k+1, 1), 2), axis, 0, count, 1)
			part = b.Pad(part, axis, shift, each-shift-count, 0)
			if before, ok := phases[phase]; ok {
				part = b.Add(before, part)
			}
			phases[phase] = part
		}
		x = b.interleave(axis, stride, phases)
		x = b.Slice(x, axis, w.before, w.before+w.n, 1)
	}
	return x
}

// interleave returns an axis with the elements of the given values in turn. A missing value counts
// as zeros; the first must be present.
func (b *Batch) interleave(axis, values int, given map[int]Value) Value {
	if values == 1 || b.err != nil {
		return given[0]
	}
	out := slices.Clone(given[0].Shape())
	out[axis] *= values
	places := slices.Sorted(maps.Keys(given))
	parts := make([]Value, len(places))
	for i, at := range places {
		next := values
		if i+1 < len(places) {
			next = places[i+1]
		}
		parts[i] = b.Unsqueeze(given[at], axis+1)
		if next > at+1 {
			parts[i] = b.Pad(parts[i], axis+1, 0, next-at-1, 0)
		}
	}
	return b.Reshape(b.Concat(axis+1, parts...), out...)
}
