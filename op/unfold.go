package op

import "math"

// UnfoldOpts are the parameters of the methods Unfold and Fold of package batch:
// the windows of images, in rows and columns.
type UnfoldOpts struct {
	Kernel   [2]int // extents of a window
	Stride   [2]int // from one window to the next; 0 stands for 1
	Dilation [2]int // from one element of a window to the next; 0 stands for 1
	Pad      [2]int // rows above and below, and columns left and right, of zeros
}

// Windows returns o with the defaults filled in, and how many windows images of so
// many rows and columns have along each, or an ErrShape.
func (o UnfoldOpts) Windows(rows, cols int) (full UnfoldOpts, count [2]int, err error) {
	for i, n := range [2]int{rows, cols} {
		if o.Stride[i] == 0 {
			o.Stride[i] = 1
		}
		if o.Dilation[i] == 0 {
			o.Dilation[i] = 1
		}
		if p := o.Pad[i]; p < 0 || p > math.MaxInt32/4 || n > math.MaxInt32/4 {
			return o, count, mismatch("%d elements of padding on both sides of %d", p, n)
		}
		w, err := windowOf(&Attrs{I: [8]int{0, o.Kernel[i], o.Stride[i], o.Dilation[i]}}, Shape{n + 2*o.Pad[i]})
		if err != nil {
			return o, count, err
		}
		count[i] = w.count
	}
	return o, count, nil
}
