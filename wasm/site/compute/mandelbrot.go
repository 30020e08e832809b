package compute

import (
	"context"
	"fmt"
	"math"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/kernel"
)

// mandelbrotParams say which part of the plane is drawn: pixel (0, 0) is the point (X, Y).
type mandelbrotParams struct {
	X, Y, Pixel float32
	Width       uint32
	Count       uint32 // the number of pixels
	Steps       uint32
}

// mandelbrot counts the steps until a point leaves the circle of radius 2. The count of a point that
// stays inside is Steps.
var mandelbrot = kernel.New("mandelbrot", func(b *kernel.Builder, p *mandelbrotParams) {
	b.LocalSize(64, 1, 1)
	out := kernel.Output[kernel.F32](b, "steps")
	i := b.GlobalX()
	b.If(i.Lt(b.U32(&p.Count)), func() {
		w := b.U32(&p.Width)
		cx := b.F32(&p.X).Add(i.Mod(w).F32().Mul(b.F32(&p.Pixel)))
		cy := b.F32(&p.Y).Sub(i.Div(w).F32().Mul(b.F32(&p.Pixel)))
		x, y, steps := kernel.NewVar(b, "x", kernel.F(0)), kernel.NewVar(b, "y", kernel.F(0)), kernel.NewVar(b, "n", kernel.F(0))
		b.For(kernel.U(0), b.U32(&p.Steps), func(kernel.U32) {
			xx, yy := x.Get().Square(), y.Get().Square()
			b.If(xx.Add(yy).Gt(kernel.F(4)), b.Break)
			y.Set(x.Get().Mul(y.Get()).Mul(kernel.F(2)).Add(cy))
			x.Set(xx.Sub(yy).Add(cx))
			steps.Set(steps.Get().Add(kernel.F(1)))
		})
		out.Set(i, steps.Get())
	})
})

// Mandelbrot paints the set around a point into a picture of four bytes for each pixel. span is the
// width of the picture in the plane, and steps is the largest number of steps of a point.
func Mandelbrot(ctx context.Context, dev *device.Device, rgba []byte, width, height int, x, y, span float64, steps int) error {
	switch {
	case width < 1 || height < 1 || width > maxPixels/height || len(rgba) != 4*width*height:
		return fmt.Errorf("the picture has %d bytes, expected four for each of %d×%d pixels: %w", len(rgba), width, height, device.ErrShape)
	case steps < 1 || steps > 1<<14:
		return fmt.Errorf("%d steps, expected 1 to %d: %w", steps, 1<<14, device.ErrLimit)
	}
	k, err := dev.Kernel(ctx, mandelbrot)
	if err != nil {
		return err
	}
	pixel := span / float64(width)
	n := width * height
	p := mandelbrotParams{
		X: float32(x - span/2), Y: float32(y + pixel*float64(height)/2), Pixel: float32(pixel),
		Width: uint32(width), Count: uint32(n), Steps: uint32(steps),
	}
	counts := make([]float32, n)
	if err := k.Run(ctx, kernel.Grid((n+63)/64), p, device.Out(counts)); err != nil {
		return err
	}
	for i, c := range counts {
		copy(rgba[4*i:], colour(float64(c), float64(steps)))
	}
	return nil
}

// colour returns the colour of a number of steps; the set is black.
func colour(c, steps float64) []byte {
	if c >= steps {
		return []byte{0, 0, 0, 255}
	}
	t := math.Sqrt(c / steps)
	wave := func(phase float64) byte {
		return byte(255 * (0.5 - 0.5*math.Cos(2*math.Pi*(t*1.6+phase))))
	}
	return []byte{wave(0), wave(0.08), wave(0.2), 255}
}
