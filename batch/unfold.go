package batch

import (
	"fmt"
	"slices"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// The methods of this file move elements between the pixels of images, whose last
// three extents are channels, rows and columns, and other axes.

// PixelShuffle returns images [... c·r·r h w] as [... c h·r w·r]. Each group of r·r
// successive channels becomes one channel, whose blocks of r by r pixels hold one pixel of
// each channel of the group. The result is a view. ONNX calls it DepthToSpace with mode
// CRD.
//
// Execute or Compile returns [op.ErrShape] for a number of channels that r·r does not divide.
func (b *Batch) PixelShuffle(x Value, r int) Value {
	return b.toSpace("pixel_shuffle", x, r, [3]int{0, 1, 2})
}

// DepthToSpace is [Batch.PixelShuffle] for channels [... r·r·c h w] in another order:
// channel i of the result is made of the channels i, i+c, i+2c and so on. ONNX calls it
// mode DCR.
//
// Execute or Compile returns [op.ErrShape] for a number of channels that r·r does not divide.
func (b *Batch) DepthToSpace(x Value, r int) Value {
	return b.toSpace("depth_to_space", x, r, [3]int{2, 0, 1})
}

// PixelUnshuffle is the inverse of [Batch.PixelShuffle]: it returns images [... c h w]
// as [... c·r·r h/r w/r].
//
// Execute or Compile returns [op.ErrShape] for extents that r does not divide.
func (b *Batch) PixelUnshuffle(x Value, r int) Value {
	return b.toDepth("pixel_unshuffle", x, r, [3]int{0, 1, 2})
}

// SpaceToDepth is the inverse of [Batch.DepthToSpace]: it returns images [... c h w]
// as [... r·r·c h/r w/r].
//
// Execute or Compile returns [op.ErrShape] for extents that r does not divide.
func (b *Batch) SpaceToDepth(x Value, r int) Value {
	return b.toDepth("space_to_depth", x, r, [3]int{1, 2, 0})
}

// toSpace splits the channels into three factors. at has the places of the channel, the
// row and the column of a block among them.
func (b *Batch) toSpace(name string, x Value, r int, at [3]int) Value {
	err := b.needs(x, 3)
	if err == nil && (r < 1 || r > 1<<15 || x.Shape()[len(x.Shape())-3]%(r*r) != 0) {
		err = fmt.Errorf("%v in blocks of %d by %d: expected a divisor of the channels: %w", x.Shape(), r, r, device.ErrShape)
	}
	if err != nil {
		return b.fail(fmt.Errorf("%s: %w", name, err))
	}
	s := x.Shape()
	lead, c, h, w := s[:len(s)-3], s[len(s)-3]/(r*r), s[len(s)-2], s[len(s)-1]
	split := []int{extent(lead), 0, 0, 0, h, w}
	split[1+at[0]], split[1+at[1]], split[1+at[2]] = c, r, r
	x = b.Permute(b.Reshape(x, split...), 0, 1+at[0], 4, 1+at[1], 5, 1+at[2])
	return b.Reshape(x, append(slices.Clone(lead), c, h*r, w*r)...)
}

// toDepth is the inverse of toSpace. Factor i of the channels is the channel (at[i] is 0), the row
// (1) or the column (2) of a block.
func (b *Batch) toDepth(name string, x Value, r int, at [3]int) Value {
	err := b.needs(x, 3)
	if err == nil && (r < 1 || r > 1<<15 || x.Shape()[len(x.Shape())-2]%r != 0 || x.Shape()[len(x.Shape())-1]%r != 0) {
		err = fmt.Errorf("%v in blocks of %d by %d: expected divisors of rows and columns: %w", x.Shape(), r, r, device.ErrShape)
	}
	if err != nil {
		return b.fail(fmt.Errorf("%s: %w", name, err))
	}
	s := x.Shape()
	lead, c, h, w := s[:len(s)-3], s[len(s)-3], s[len(s)-2]/r, s[len(s)-1]/r
	if c > 0 && r*r > (1<<31-1)/c {
		return b.fail(fmt.Errorf("%s: %v in blocks of %d overflows: %w", name, s, r, device.ErrShape))
	}
	place := [3]int{1, 3, 5} // of channel, row and column of a block
	x = b.Permute(b.Reshape(x, extent(lead), c, h, r, w, r), 0, place[at[0]], place[at[1]], place[at[2]], 2, 4)
	return b.Reshape(x, append(slices.Clone(lead), c*r*r, h, w)...)
}

// Unfold returns the windows of arrays x [... c d...], with one extent of windows for each
// spatial axis d, as columns [... c·k n]: row (channel, element of the window), column the
// window, in row-major order. This is im2col: the product of weights [m c·k] with the
// result is a convolution. Windows without padding are a view. The elements that several
// windows share are then in memory once.
//
//	b.Unfold(x, []int{3, 3}, op.UnfoldOpts{Pad: []int{1, 1}})
//
// Execute or Compile returns [op.ErrShape] if windows have no axis or more than three, if x has no axis of channels before the spatial ones, if a spatial axis is
// empty, or if a window is larger than the padded axis.
func (b *Batch) Unfold(x Value, size []int, opts ...op.UnfoldOpts) Value {
	const name = "unfold"
	n := len(size)
	err := b.needs(x, n+1)
	if err != nil {
		return b.fail(fmt.Errorf("%s: %w", name, err))
	}
	at := len(x.Shape()) - n
	lead, c, spatial := x.Shape()[:at-1], x.Shape()[at-1], x.Shape()[at:]
	list, err := unfolding(spatial, size, opts)
	if err != nil {
		return b.refuse(name, []Value{x}, "%w", err)
	}
	x = b.padded(b.Reshape(x, slices.Concat([]int{extent(lead), c}, spatial)...), list, 0)
	order := []int{0, 1}
	for i, w := range list {
		x = b.SlidingWindow(x, w.axis, w.size, w.stride, w.dilation)
		order = append(order, 2+n+i)
	}
	x = b.Permute(x, append(order, span(2, 2+n)...)...)
	elements, windows := shapes(list)
	return b.Reshape(x, append(slices.Clone(lead), c*product(elements), product(windows))...)
}

// Fold is the reverse of [Batch.Unfold]: it returns arrays [... c d...] of the given spatial
// extents from columns x [... c·k n]. Each element is the sum of the elements of the windows at its
// position, and 0 if no window covers it. The Fold of an Unfold multiplies a pixel by the number of
// windows that contain it. ONNX calls it Col2Im.
//
//	b.Fold(columns, []int{h, w}, []int{3, 3}, op.UnfoldOpts{Pad: []int{1, 1}})
//
// Execute or Compile returns [op.ErrShape] if x has other numbers of rows or columns than Unfold returns for these extents, size and options.
func (b *Batch) Fold(x Value, extents, size []int, opts ...op.UnfoldOpts) Value {
	const name = "fold"
	err := b.needs(x, 2)
	if err != nil {
		return b.fail(fmt.Errorf("%s: %w", name, err))
	}
	s := x.Shape()
	at := len(s) - 2
	list, err := unfolding(extents, size, opts)
	var elements, windows []int
	if err == nil {
		elements, windows = shapes(list)
		if !bounded(elements) || !bounded(windows) || s[at]%product(elements) != 0 || s[at+1] != product(windows) {
			err = fmt.Errorf("the last extents of %v: expected (c times %v) and (the product of %v): %w", s, elements, windows, device.ErrShape)
		}
	}
	if err != nil {
		return b.refuse(name, []Value{x}, "%w", err)
	}
	c := s[at] / product(elements)
	x = b.overlapAdd(b.Reshape(x, slices.Concat([]int{extent(s[:at]), c}, elements, windows)...), list)
	return b.Reshape(x, slices.Concat(s[:at], []int{c}, extents)...)
}

// unfolding returns how the windows of Unfold and Fold move along spatial axes.
func unfolding(spatial, size []int, opts []op.UnfoldOpts) ([]window, error) {
	o, err := op.OptionOf(opts)
	if err != nil {
		return nil, err
	}
	how := windowing{size: size, stride: o.Stride, pad: o.Pad, padAfter: o.PadAfter, dilation: o.Dilation}
	list, why := how.over(slices.Concat([]int{1, 1}, spatial))
	if why == "" && !bounded(spatial) {
		why = "too many elements"
	}
	if why != "" {
		return nil, fmt.Errorf("%s: windows %v of %v, strides %v, pads %v and %v, dilations %v: %w", why, size, spatial, o.Stride, o.Pad, o.PadAfter, o.Dilation, device.ErrShape)
	}
	return list, nil
}

// shapes returns the numbers of elements of a window, and the numbers of windows, for each axis.
func shapes(list []window) (elements, windows []int) {
	for _, w := range list {
		elements, windows = append(elements, w.size), append(windows, w.count)
	}
	return elements, windows
}
