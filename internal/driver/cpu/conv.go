package cpu

import (
	"context"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// A convTask correlates images with windows.
type convTask struct {
	d       *processor
	conv    simd.Conv2D // without the memory
	x, w, y int         // number of elements
	epilogue
}

// largestConv is the largest size that the kernels support.
const largestConv = 1 << 28

func (t *convTask) configure(_ *op.Operation, a *op.Attrs, dims []op.Shape) error {
	s, err := op.Conv2DOf(a, dims[:2])
	if err != nil {
		return err
	}
	o := op.Conv2DOptsOf(a)
	// A stride beyond the padded image makes no difference, so reduce it to one that gives the same
	// shapes.
	for i, extent := range [2]int{s.H, s.W} {
		o.Stride[i] = min(o.Stride[i], extent+2*o.Pad[i])
	}
	for i, n := range [2]int{s.KH, s.KW} {
		if n == 1 {
			o.Dilation[i] = 1
		}
	}
	for _, v := range [...]int{s.N, s.C, s.H, s.W, s.O, o.Stride[0], o.Stride[1], o.Pad[0], o.Pad[1], o.Dilation[0], o.Dilation[1]} {
		if v > largestConv {
			return fmt.Errorf("size %d of a convolution: %w", v, driver.ErrLimit)
		}
	}
	t.conv = simd.Conv2D{N: s.N, C: s.C, H: s.H, W: s.W, O: s.O, KH: s.KH, KW: s.KW,
		StrideH: o.Stride[0], StrideW: o.Stride[1], PadH: o.Pad[0], PadW: o.Pad[1],
		DilationH: o.Dilation[0], DilationW: o.Dilation[1], Groups: s.Groups}
	t.x, t.w = size(dims[0]), size(dims[1])
	plane := s.OutH * s.OutW
	t.y = s.N * s.O * plane
	return t.epilogue.configure(a, plane)
}

// compute implements core.
func (t *convTask) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	c := &t.conv
	c.X, c.Weights, c.Y = slice(in[0], t.x), slice(in[1], t.w), slice(out[0], t.y)
	c.Bias = nil
	if len(in) > 2 && in[2] != nil {
		c.Bias = slice(in[2], c.O)
	}
	c.Epilogue = t.hook()
	if t.y > 0 {
		pool := t.d.pool.Under(ctx)
		c.Run(pool)
		pool.Release()
		if ctx.Err() == nil {
			t.after(c.Y)
		}
	}
	c.X, c.Weights, c.Y, c.Bias = nil, nil, nil, nil
	return ctx.Err()
}
