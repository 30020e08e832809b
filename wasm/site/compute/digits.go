package compute

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/examples/digits/data"
	"github.com/rayo-go/rayo/op"
)

// Digits is the network of examples/digits, compiled once.
type Digits struct {
	plan    *batch.Plan
	x, prob []float32
}

// NewDigits compiles the network.
func NewDigits(ctx context.Context, dev *device.Device) (*Digits, error) {
	const hidden, digits = 64, 10
	rest := data.Weights
	next := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(rest[4*i:]))
		}
		rest = rest[4*n:]
		return x
	}
	d := &Digits{x: make([]float32, data.Pixels), prob: make([]float32, digits)}
	b := batch.New(dev)
	x := b.Scale(b.Upload(d.x, 1, data.Pixels), 1.0/16)
	h := b.MatMul(x, b.Upload(next(data.Pixels*hidden), data.Pixels, hidden), b.Upload(next(hidden)), op.MatMulOpts{Act: op.Relu})
	score := b.MatMul(h, b.Upload(next(hidden*digits), hidden, digits), b.Upload(next(digits)))
	batch.ReadInto(b, b.Softmax(score), d.prob)
	var err error
	d.plan, err = b.Compile(ctx)
	return d, err
}

// Read returns the probability of each digit for an image of 8 by 8 pixels from 0 to 16.
func (d *Digits) Read(ctx context.Context, pixels []float32) ([]float32, error) {
	if len(pixels) != len(d.x) {
		return nil, fmt.Errorf("the image has %d pixels, expected %d: %w", len(pixels), len(d.x), device.ErrShape)
	}
	copy(d.x, pixels)
	if err := d.plan.Run(ctx); err != nil {
		return nil, err
	}
	return append([]float32(nil), d.prob...), nil
}

// Close releases the plan of the network.
func (d *Digits) Close() error { return d.plan.Close() }

// Reduce converts a drawing to the input format of the network: the drawn part is scaled to
// 32 rows of 32 points, as in the collection of digits, and each pixel of the result counts
// the inked points of a 4 by 4 square. ink has one byte per pixel; values from 128 on are ink.
func Reduce(ink []byte, width, height int) ([]float32, error) {
	if width < 1 || height < 1 || width > maxPixels/height || len(ink) != width*height {
		return nil, fmt.Errorf("the drawing has %d bytes, expected one for each of %d×%d pixels: %w", len(ink), width, height, device.ErrShape)
	}
	left, top, right, bottom := width, height, -1, -1
	for i, v := range ink {
		if v >= 128 {
			left, right = min(left, i%width), max(right, i%width)
			top, bottom = min(top, i/width), max(bottom, i/width)
		}
	}
	pixels := make([]float32, data.Pixels)
	if right < 0 {
		return pixels, nil
	}
	// The scale is the same in both directions, so that a drawn digit 1 stays narrow.
	side := float64(max(right-left, bottom-top) + 1)
	x0, y0 := float64(left+right+1)/2-side/2, float64(top+bottom+1)/2-side/2
	for v := range 32 {
		for u := range 32 {
			x, y := int(math.Floor(x0+(float64(u)+0.5)*side/32)), int(math.Floor(y0+(float64(v)+0.5)*side/32))
			if x >= 0 && y >= 0 && x < width && y < height && ink[y*width+x] >= 128 {
				pixels[v/4*8+u/4]++
			}
		}
	}
	return pixels, nil
}

// Sample returns image i of the images that the network was not trained on, and the digit that it shows.
func Sample(i int) (pixels []float32, digit int) {
	images, labels := data.Images()
	i %= len(labels)
	if i < 0 {
		i += len(labels)
	}
	return images[i*data.Pixels : (i+1)*data.Pixels], labels[i]
}
