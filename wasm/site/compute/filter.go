// Package compute holds the computations of the demo site: image filters, the Mandelbrot
// set, handwritten digits and two benchmarks. It runs on every device and system, so that
// tests can compare the results of a page with the results of the native CPU.
package compute

import (
	"context"
	"fmt"
	"strings"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// Filters are the names of the filters, in the order in which the page lists them.
var Filters = []string{"contrast", "saturation", "sepia", "invert", "blur", "sharpen", "edges"}

// filters has functions that record a filter of x [3 1 h w]: red, green and blue from 0 to 1. by [1]
// is the strength of the filter, from 0 to 1.
var filters = map[string]func(b *batch.Batch, x, by batch.Value) batch.Value{
	"contrast": func(b *batch.Batch, x, by batch.Value) batch.Value {
		return b.AddScalar(b.Mul(b.AddScalar(x, -0.5), b.AddScalar(b.Scale(by, 2), 1)), 0.5)
	},
	"saturation": func(b *batch.Batch, x, by batch.Value) batch.Value {
		grey := luminance(b, x)
		return b.Add(grey, b.Mul(b.Sub(x, grey), b.AddScalar(b.Scale(by, 3), 0)))
	},
	"sepia": func(b *batch.Batch, x, by batch.Value) batch.Value {
		return b.Map(mix, x, b.Mul(luminance(b, x), b.Upload([]float32{1.12, 0.93, 0.7}, 3, 1, 1, 1)), by)
	},
	"invert": func(b *batch.Batch, x, by batch.Value) batch.Value {
		return b.Map(mix, x, b.AddScalar(b.Neg(x), 1), by)
	},
	"blur": func(b *batch.Batch, x, by batch.Value) batch.Value {
		return b.Map(mix, x, blurred(b, x), by)
	},
	"sharpen": func(b *batch.Batch, x, by batch.Value) batch.Value {
		return b.Map(sharper, x, blurred(b, x), by)
	},
	"edges": func(b *batch.Batch, x, by batch.Value) batch.Value {
		grey := luminance(b, x)
		across := windowed(b, grey, []float32{-1, 0, 1, -2, 0, 2, -1, 0, 1}, 3)
		down := windowed(b, grey, []float32{-1, -2, -1, 0, 0, 0, 1, 2, 1}, 3)
		return b.Map(mix, x, b.Map(length, across, down), by)
	},
}

// Operations of the site. Each is fused into the kernel of the operations around it.
var (
	mix     = op.Ternary("mix", func(x, y, t op.Expr) op.Expr { return x.Add(y.Sub(x).Mul(t)) })
	sharper = op.Ternary("sharper", func(x, soft, t op.Expr) op.Expr { return x.Add(x.Sub(soft).Mul(t.Mul(op.Const(3)))) })
	length  = op.Binary("length", func(x, y op.Expr) op.Expr { return x.Square().Add(y.Square()).Sqrt() })
)

// luminance returns the brightness of x as [1 1 h w].
func luminance(b *batch.Batch, x batch.Value) batch.Value {
	weights := b.Upload([]float32{0.299, 0.587, 0.114}, 3, 1, 1, 1)
	return b.Sum(b.Mul(x, weights), op.Axes(0).KeepDims())
}

// windowed returns the correlation of x with a square window of the given number of rows. Beyond the
// border, the nearest pixel of the picture counts: zeros would look like edges around the picture.
func windowed(b *batch.Batch, x batch.Value, window []float32, rows int) batch.Value {
	x = b.PadMode(x, 2, rows/2, rows/2, batch.PadEdge)
	x = b.PadMode(x, 3, rows/2, rows/2, batch.PadEdge)
	return b.Conv2D(x, b.Upload(window, 1, 1, rows, rows), batch.None)
}

func blurred(b *batch.Batch, x batch.Value) batch.Value {
	line := []float32{1, 4, 6, 4, 1}
	window := make([]float32, 0, 25)
	for _, u := range line {
		for _, v := range line {
			window = append(window, u*v/256)
		}
	}
	return windowed(b, x, window, 5)
}

// Filter is a filter for pictures of one size, compiled once.
type Filter struct {
	plan    *batch.Plan
	in, out []float32 // three planes each
	by      []float32
	n       int // the number of pixels
}

// maxPixels is the largest number of pixels of a picture.
const maxPixels = 1 << 24

// NewFilter compiles the filter with the given name for pictures of width × height pixels.
func NewFilter(ctx context.Context, dev *device.Device, name string, width, height int) (*Filter, error) {
	record := filters[name]
	if record == nil {
		return nil, fmt.Errorf("no filter is called %q, expected one of %s: %w", name, strings.Join(Filters, ", "), device.ErrUnsupported)
	}
	if width < 1 || height < 1 || width > maxPixels/height {
		return nil, fmt.Errorf("the picture has %d×%d pixels, expected 1 to %d in all: %w", width, height, maxPixels, device.ErrLimit)
	}
	n := width * height
	f := &Filter{n: n, in: make([]float32, 3*n), out: make([]float32, 3*n), by: make([]float32, 1)}
	b := batch.New(dev)
	y := record(b, b.Upload(f.in, 3, 1, height, width), b.Upload(f.by, 1))
	// Scale to 255 and round on the device, so that bytes do not depend on the conversion.
	batch.ReadInto(b, b.Expand(b.Round(b.Scale(b.Clip(y, 0, 1), 255)), 3, 1, height, width), f.out)
	var err error
	f.plan, err = b.Compile(ctx)
	return f, err
}

// Run filters a picture in place. Each pixel has four bytes: red, green, blue and opacity.
func (f *Filter) Run(ctx context.Context, rgba []byte, by float32) error {
	if len(rgba) != 4*f.n {
		return fmt.Errorf("the picture has %d bytes, expected four for each of %d pixels: %w", len(rgba), f.n, device.ErrShape)
	}
	for c := range 3 {
		plane := f.in[c*f.n : (c+1)*f.n]
		for i := range plane {
			plane[i] = float32(rgba[4*i+c]) * (1.0 / 255)
		}
	}
	f.by[0] = by
	if err := f.plan.Run(ctx); err != nil {
		return err
	}
	for c := range 3 {
		for i, v := range f.out[c*f.n : (c+1)*f.n] {
			rgba[4*i+c] = byte(v)
		}
	}
	return nil
}

// Close releases the plan and the buffers of the filter.
func (f *Filter) Close() error { return f.plan.Close() }
