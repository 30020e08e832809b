package op

import (
	"math"

	"github.com/rayo-go/rayo/internal/irhook"
)

// Conv2DOpts are the parameters of [Conv2D]. Pairs are vertical, horizontal.
type Conv2DOpts struct {
	Stride    [2]int     // step of the window; 0 means 1
	Pad       [2]int     // zeros added on each side
	Dilation  [2]int     // distance between the window's elements; 0 means 1
	Groups    int        // number of groups of channels; 0 means 1
	Act       *Operation // elementwise operation of one operand applied to the result; nil for none
	ActParams Attrs      // its parameters; the zero value means its defaults
}

// Attrs converts the options to parameters.
func (o Conv2DOpts) Attrs() Attrs {
	o = o.defaults()
	return withAct(Attrs{I: [8]int{o.Stride[0], o.Stride[1], o.Pad[0], o.Pad[1], o.Dilation[0], o.Dilation[1], o.Groups}}, o.Act, o.ActParams)
}

// Conv2DOptsOf decodes the result of [Conv2DOpts.Attrs], and replaces zeros by the defaults.
func Conv2DOptsOf(a *Attrs) Conv2DOpts {
	act, params := a.Activation()
	return Conv2DOpts{[2]int{a.I[0], a.I[1]}, [2]int{a.I[2], a.I[3]}, [2]int{a.I[4], a.I[5]}, a.I[6], act, params}.defaults()
}

func (o Conv2DOpts) defaults() Conv2DOpts {
	for _, p := range []*int{&o.Stride[0], &o.Stride[1], &o.Dilation[0], &o.Dilation[1], &o.Groups} {
		if *p == 0 {
			*p = 1
		}
	}
	return o
}

// defConv2D computes the cross-correlation of images with windows, which neural networks call
// convolution: the window is not mirrored. [Conv2DOf] reads the sizes.
var defConv2D = Operation{define: func() *definition {
	return add(&definition{name: "conv2d", class: Shaped, selfTest: &irhook.SelfTest{Attrs: Conv2DOpts{}.Attrs(), Shapes: [][]int{{1, 2, 6, 5}, {3, 2, 3, 3}}}, doc: "the cross-correlation of images with filters, which neural networks call convolution",
		formula: "act(Σ_c,i,j x[n, c, y*stride+i*dilation-pad, x*stride+j*dilation-pad] * w[o, c, i, j] + bias[o])",
		inputs:  []string{"x", "w", "bias"}, arity: [2]int{2, 3},
		shapes:  "x [n c h w], w [o c/groups kh kw], bias [o]; gives [n o h' w'] with h' = (h + 2·pad - dilation·(kh-1) - 1) / stride + 1, rounded down, and w' likewise",
		options: "Conv2DOpts", tol: blocked(), types: activated, shape: conv2DShape, ref: conv2DReference,
		special: "As matmul. The padding is 0, so an infinite weight over it gives NaN.",
		flops: func(a *Attrs, in, _ []Shape) float64 {
			c, _ := Conv2DOf(a, in)
			return 2 * float64(c.N) * float64(c.O) * float64(c.OutH) * float64(c.OutW) * float64(c.C/max(c.Groups, 1)) * float64(c.KH) * float64(c.KW)
		}})
}}

// Convolution holds the sizes of a [Conv2D].
type Convolution struct {
	N, C, H, W int // of the images
	O, KH, KW  int // windows and their extents
	OutH, OutW int // of the results
	Groups     int
}

// Conv2DOf returns the sizes of a [Conv2D] over operands of the given shapes,
// or an ErrShape.
func Conv2DOf(a *Attrs, in []Shape) (Convolution, error) {
	o := Conv2DOptsOf(a)
	x, w := in[0], in[1]
	if len(x) != 4 || len(w) != 4 {
		return Convolution{}, mismatch("images %v, windows %v: both must have four extents", x, w)
	}
	c := Convolution{N: x[0], C: x[1], H: x[2], W: x[3], O: w[0], KH: w[2], KW: w[3], Groups: o.Groups}
	switch {
	case o.Groups < 1 || c.C%o.Groups != 0 || c.O%o.Groups != 0:
		return Convolution{}, mismatch("%d groups for %d channels and %d windows: the number of groups must divide both", o.Groups, c.C, c.O)
	case w[1] != c.C/o.Groups:
		return Convolution{}, mismatch("windows %v of %d channels for images %v in %d groups: expected %d channels", w, w[1], x, o.Groups, c.C/o.Groups)
	case len(in) > 2 && in[2] != nil && !in[2].Equal(Shape{c.O}):
		return Convolution{}, mismatch("bias %v for %d windows: expected %v", in[2], c.O, Shape{c.O})
	}
	var err error
	if c.OutH, err = windows(c.H, c.KH, o, 0); err != nil {
		return Convolution{}, err
	}
	c.OutW, err = windows(c.W, c.KW, o, 1)
	return c, err
}

// windows returns how many places a window has along one axis.
func windows(extent, window int, o Conv2DOpts, axis int) (int, error) {
	stride, pad, dilation := o.Stride[axis], o.Pad[axis], o.Dilation[axis]
	for _, v := range [...]int{stride, pad, dilation, extent, window} {
		if v < 0 || v > math.MaxInt32 {
			return 0, mismatch("extent %d, window %d, stride %d, padding %d, dilation %d: each must be from 0 to 2^31-1", extent, window, stride, pad, dilation)
		}
	}
	if window == 0 || extent == 0 {
		return 0, mismatch("window %d over extent %d: both must be at least 1", window, extent)
	}
	// Every factor is below 2^31, so nothing here overflows.
	room := int64(extent) + 2*int64(pad) - int64(dilation)*int64(window-1) - 1
	if room < 0 {
		return 0, mismatch("window %d with dilation %d is longer than extent %d with padding %d on each side", window, dilation, extent, pad)
	}
	n := room/int64(stride) + 1
	if n > math.MaxInt32 {
		return 0, mismatch("a window has %d places along an axis: at most 2^31-1 are supported", n)
	}
	return int(n), nil
}

func conv2DShape(a *Attrs, in []Shape) ([]Shape, error) {
	c, err := Conv2DOf(a, in)
	if err != nil {
		return nil, err
	}
	return []Shape{{c.N, c.O, c.OutH, c.OutW}}, nil
}

func conv2DReference(a *Attrs, in, out []*Array) {
	shapes := []Shape{in[0].Shape, in[1].Shape}
	s, _ := Conv2DOf(a, shapes)
	o := Conv2DOptsOf(a)
	y := out[0]
	y.Mag = make([]float64, len(y.Data))
	channels := s.C / s.Groups
	depth := Depth(channels * s.KH * s.KW)
	for p := range y.Data {
		col, row, f, n := p%s.OutW, p/s.OutW%s.OutH, p/(s.OutW*s.OutH)%s.O, p/(s.OutW*s.OutH*s.O)
		group := f / (s.O / s.Groups)
		sum, mag, lost := 0.0, 0.0, 0.0
		for c := range channels {
			image := in[0].Data[(n*s.C+group*channels+c)*s.H*s.W:]
			window := in[1].Data[(f*channels+c)*s.KH*s.KW:]
			for i := range s.KH {
				for j := range s.KW {
					h := row*o.Stride[0] + i*o.Dilation[0] - o.Pad[0]
					w := col*o.Stride[1] + j*o.Dilation[1] - o.Pad[1]
					v := 0.0
					if h >= 0 && h < s.H && w >= 0 && w < s.W {
						v = image[h*s.W+w]
					}
					t := v * window[i*s.KW+j]
					sum += t
					mag += math.Abs(t)
					lost += underflow(t)
				}
			}
		}
		if in[2] != nil {
			sum += in[2].Data[f]
			mag += math.Abs(in[2].Data[f])
		}
		y.Data[p], y.Mag[p] = sum, mag*depth+lost
	}
}
