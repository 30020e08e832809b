package batch

import (
	"fmt"
	"slices"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// The methods of this file move elements between the pixels of images, whose last
// three extents are channels, rows and columns, and other axes.

// PixelShuffle returns images [... c·r·r h w] with r times the rows and columns of
// c channels: each channel is made of r·r successive ones, one for each place of a
// block of r by r pixels. It is a view; ONNX calls it DepthToSpace in the mode CRD.
//
// Extents that r·r does not divide are [op.ErrShape], which Execute or Compile
// returns.
func (b *Batch) PixelShuffle(x Value, r int) Value {
	return b.toSpace("pixel_shuffle", x, r, [3]int{0, 1, 2})
}

// DepthToSpace is [Batch.PixelShuffle] where the channels [... r·r·c h w] stand block
// by block: channel i of the result is made of the channels i, i+c, i+2c and so on.
// ONNX calls it the mode DCR, TensorFlow depth_to_space.
//
// Extents that r·r does not divide are [op.ErrShape], which Execute or Compile
// returns.
func (b *Batch) DepthToSpace(x Value, r int) Value {
	return b.toSpace("depth_to_space", x, r, [3]int{2, 0, 1})
}

// PixelUnshuffle is the inverse of [Batch.PixelShuffle]: it returns images [... c h w]
// as [... c·r·r h/r w/r].
//
// Extents that r does not divide are [op.ErrShape], which Execute or Compile returns.
func (b *Batch) PixelUnshuffle(x Value, r int) Value {
	return b.toDepth("pixel_unshuffle", x, r, [3]int{0, 1, 2})
}

// SpaceToDepth is the inverse of [Batch.DepthToSpace]: it returns images [... c h w]
// as [... r·r·c h/r w/r].
//
// Extents that r does not divide are [op.ErrShape], which Execute or Compile returns.
func (b *Batch) SpaceToDepth(x Value, r int) Value {
	return b.toDepth("space_to_depth", x, r, [3]int{1, 2, 0})
}

// toSpace splits the channels into three factors, of which at says which one is the
// channel, the row and the column of a block.
func (b *Batch) toSpace(name string, x Value, r int, at [3]int) Value {
	err := b.needs(x, 3)
	if err == nil && (r < 1 || r > 1<<15 || x.Shape()[len(x.Shape())-3]%(r*r) != 0) {
		err = fmt.Errorf("%v in blocks of %d by %d: they divide the channels: %w", x.Shape(), r, r, device.ErrShape)
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

// toDepth is the inverse of toSpace: at says which of channel, row and column of a
// block each factor of the channels is.
func (b *Batch) toDepth(name string, x Value, r int, at [3]int) Value {
	err := b.needs(x, 3)
	if err == nil && (r < 1 || r > 1<<15 || x.Shape()[len(x.Shape())-2]%r != 0 || x.Shape()[len(x.Shape())-1]%r != 0) {
		err = fmt.Errorf("%v in blocks of %d by %d: they divide rows and columns: %w", x.Shape(), r, r, device.ErrShape)
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

// Unfold returns the windows of images [... c h w] as columns [... c·kh·kw n]: row
// (channel, row of the window, column of the window), column the window, row by row
// of windows. That is im2col; a product with weights [m c·kh·kw] is a convolution.
// Windows that are not padded are a view, whose elements are in memory once.
//
//	b.Unfold(x, op.UnfoldOpts{Kernel: [2]int{3, 3}, Pad: [2]int{1, 1}})
//
// Less than three extents, or windows larger than the image, are [op.ErrShape],
// which Execute or Compile returns.
func (b *Batch) Unfold(x Value, o op.UnfoldOpts) Value {
	err := b.needs(x, 3)
	var n [2]int
	if err == nil {
		s := x.Shape()
		o, n, err = o.Windows(s[len(s)-2], s[len(s)-1])
	}
	if err != nil {
		return b.fail(fmt.Errorf("unfold: %w", err))
	}
	s := x.Shape()
	lead, c := s[:len(s)-3], s[len(s)-3]
	x = b.Reshape(x, extent(lead), c, s[len(s)-2], s[len(s)-1])
	for i := range 2 {
		if o.Pad[i] > 0 {
			x = b.Pad(x, 2+i, o.Pad[i], o.Pad[i], 0)
		}
	}
	for i := range 2 {
		x = b.SlidingWindow(x, 2+i, o.Kernel[i], o.Stride[i], o.Dilation[i])
	}
	x = b.Permute(x, 0, 1, 4, 5, 2, 3)
	return b.Reshape(x, append(slices.Clone(lead), c*o.Kernel[0]*o.Kernel[1], n[0]*n[1])...)
}

// Fold returns images [... c h w] of windows that [Batch.Unfold] returns for images
// of that size: each pixel is the sum of the elements that are its own in the
// windows, 0 if there are none. The sums are of kw terms along rows, then kh along
// columns.
//
// Windows of another number or size are [op.ErrShape], which Execute or Compile
// returns.
func (b *Batch) Fold(x Value, h, w int, o op.UnfoldOpts) Value {
	err := b.needs(x, 2)
	var n [2]int
	if err == nil {
		o, n, err = o.Windows(h, w)
	}
	if err == nil {
		s := x.Shape()
		if rows, cols := s[len(s)-2], s[len(s)-1]; rows%o.Kernel[0] != 0 || rows/o.Kernel[0]%o.Kernel[1] != 0 || cols != n[0]*n[1] {
			err = fmt.Errorf("%v for %d by %d windows of %d by %d elements: %w", s, n[0], n[1], o.Kernel[0], o.Kernel[1], device.ErrShape)
		}
	}
	if err != nil {
		return b.fail(fmt.Errorf("fold: %w", err))
	}
	s := x.Shape()
	lead, c := s[:len(s)-2], s[len(s)-2]/o.Kernel[0]/o.Kernel[1]
	x = b.Reshape(x, extent(lead)*c, o.Kernel[0], o.Kernel[1], n[0], n[1])
	x = b.overlap(b.Permute(x, 0, 1, 3, 2, 4), w, 1, o) // [b kh nh kw nw] to [b kh nh w]
	x = b.overlap(b.Permute(x, 0, 3, 1, 2), h, 0, o)    // [b w kh nh] to [b w h]
	return b.Reshape(b.SwapAxes(x, 1, 2), append(slices.Clone(lead), c, h, w)...)
}

// overlap adds the elements of windows, [... k n], at their places along an axis of
// length elements, but for its padding.
func (b *Batch) overlap(x Value, length, i int, o op.UnfoldOpts) Value {
	if b.err != nil {
		return Value{}
	}
	axis := len(x.Shape()) - 2
	n, step, pad := x.Shape()[axis+1], o.Stride[i], o.Pad[i]
	s := append(slices.Clone(x.Shape()[:axis]), n*step)
	var sum Value
	for k := range o.Kernel[i] {
		// The elements lie step apart, with zeros between, from at on.
		y := b.Squeeze(b.Slice(x, axis, k, k+1, 1), axis)
		y = b.Reshape(b.Pad(b.Unsqueeze(y, -1), -1, 0, step-1, 0), s...)
		at := k*o.Dilation[i] - pad
		y = b.Slice(y, axis, min(max(-at, 0), n*step), min(n*step, max(length-at, 0)), 1)
		if b.err != nil {
			return Value{}
		}
		before := max(at, 0)
		if have := y.Shape()[axis]; have == 0 {
			before = 0
		}
		y = b.Pad(y, axis, before, length-before-y.Shape()[axis], 0)
		if k == 0 {
			sum = y
		} else {
			sum = b.Add(sum, y)
		}
	}
	return sum
}
