// Command blur softens a picture with a Gaussian in two passes, along rows and
// along columns. Each workgroup first brings the part of a line that its lanes
// need into its own memory, so that every pixel is read from the buffer once and
// not once for each weight.
package main

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"io"
	"log"
	"math"
	"os"
	"path/filepath"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/examples/internal/picture"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// params says where the pixels of a line are: pixel i of line j is at
// j*Line + i*Pixel.
type params struct {
	Length, Line, Pixel uint32
}

const lanes = 128

// blurs is one kernel for each radius: the loop over the weights unrolls, and the
// tile is as large as the radius needs.
var blurs = kernel.NewFamily("blur", func(b *kernel.Builder, p *params, radius int) {
	b.LocalSize(lanes, 1, 1)
	x := kernel.Input[kernel.F32](b, "x")
	weights := kernel.Input[kernel.F32](b, "weights")
	y := kernel.Output[kernel.F32](b, "y")
	tile := kernel.Shared[kernel.F32](b, "tile", lanes+2*radius)

	n, lane := b.U32(&p.Length), b.Lane()
	start := b.GroupY().Mul(b.U32(&p.Line))
	pixel := func(i kernel.U32) kernel.U32 { return start.Add(i.Mul(b.U32(&p.Pixel))) }
	first := b.GroupX().Mul(kernel.U(lanes))
	// The tile begins radius pixels before the first; beyond the ends of the
	// line stand the pixels of the ends.
	b.ForStep(lane, kernel.U(uint32(tile.Len())), kernel.U(lanes), func(t kernel.U32) {
		i := first.Add(t).Max(kernel.U(uint32(radius))).Sub(kernel.U(uint32(radius)))
		tile.Set(t, x.At(pixel(i.Min(n.Sub(kernel.U(1))))))
	})
	b.Barrier()
	i := first.Add(lane)
	b.If(i.Lt(n), func() {
		sum := kernel.F(0)
		for t := range uint32(2*radius + 1) {
			sum = tile.At(lane.Add(kernel.U(t))).Fma(weights.At(kernel.U(t)), sum)
		}
		y.Set(pixel(i), sum)
	})
})

func main() {
	out := filepath.Join(os.TempDir(), "rayo-blur.png")
	if len(os.Args) > 1 {
		out = os.Args[1]
	}
	if err := run(context.Background(), os.Stdout, out); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer, out string) error {
	dev, err := device.Open(ctx)
	if err != nil {
		return err
	}
	defer dev.Close()
	const width, height, radius = 320, 240, 6
	x := drawing(width, height)
	y, err := blur(ctx, dev, x, width, height, radius)
	if err != nil {
		return err
	}
	img := image.NewGray(image.Rect(0, 0, width, height))
	for i, v := range y {
		img.Set(i%width, i/width, color.Gray{Y: uint8(255*v + 0.5)})
	}
	if err := picture.Write(out, img); err != nil {
		return err
	}
	fmt.Fprintf(w, "steepest step between neighbours: %.2f before, %.2f after; %s\n", steepest(x, width), steepest(y, width), out)
	return nil
}

// blur returns a picture softened with a Gaussian that ends radius pixels from
// its middle. Both passes are one submission.
func blur(ctx context.Context, dev *device.Device, x []float32, width, height, radius int) ([]float32, error) {
	k, err := dev.Kernel(ctx, blurs.Of(radius))
	if err != nil {
		return nil, err
	}
	b := batch.New(dev)
	weights := b.Upload(gaussian(radius))
	pass := func(x batch.Value, length, lines int, p params) batch.Value {
		grid := kernel.Grid((length+lanes-1)/lanes, lines)
		return b.Launch(k, grid, p, batch.In(x), batch.In(weights), batch.Out(op.F32, width*height))[0]
	}
	rows := pass(b.Upload(x), width, height, params{uint32(width), uint32(width), 1})
	y := pass(rows, height, width, params{uint32(height), 1, uint32(width)})
	if err := b.Execute(ctx, y); err != nil {
		return nil, err
	}
	return batch.Read[float32](ctx, b, y)
}

// gaussian returns weights that fall to 1% at the ends and have the sum 1.
func gaussian(radius int) []float32 {
	w := make([]float32, 2*radius+1)
	var sum float32
	for i := range w {
		d := float64(i-radius) / float64(radius+1)
		w[i] = float32(math.Exp(-4.6 * d * d))
		sum += w[i]
	}
	for i := range w {
		w[i] /= sum
	}
	return w
}

// drawing returns rings and bars with hard edges.
func drawing(width, height int) []float32 {
	x := make([]float32, width*height)
	for i := range x {
		dx, dy := float64(i%width-width/2), float64(i/width-height/2)
		if ring := int(math.Hypot(dx, dy)) / 10; ring%2 == 0 && ring < 10 || ring >= 11 && i%width/16%2 == 0 {
			x[i] = 1
		}
	}
	return x
}

// steepest returns the greatest difference of neighbours in a row.
func steepest(x []float32, width int) float64 {
	s := 0.0
	for i := range x[1:] {
		if (i+1)%width != 0 {
			s = max(s, math.Abs(float64(x[i+1]-x[i])))
		}
	}
	return s
}
