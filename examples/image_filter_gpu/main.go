// Command image_filter_gpu takes the noise out of a picture and leaves its edges:
// each pixel becomes the mean of those around it that look like it. The kernel
// brings a tile of the picture into the memory of a workgroup, and runs on every
// device.
package main

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/examples/internal/picture"
	"github.com/rayo-go/rayo/kernel"
)

type params struct {
	Width, Height uint32
	Nearness      float32 // weight is exp(-Nearness·distance² - Likeness·difference²)
	Likeness      float32
}

const (
	side   = 8 // of a workgroup, in pixels
	radius = 2
	tile   = side + 2*radius
)

// bilateral filters pixels of red, green and blue and a fourth number that is
// left as it is.
var bilateral = kernel.New("bilateral", func(b *kernel.Builder, p *params) {
	b.LocalSize(side, side, 1)
	src := kernel.Input[kernel.Vec4F](b, "src")
	dst := kernel.Output[kernel.Vec4F](b, "dst")
	near := kernel.Shared[kernel.Vec4F](b, "near", tile*tile)

	width, height := b.U32(&p.Width), b.U32(&p.Height)
	// The tile begins radius pixels before the workgroup's; beyond the border are
	// the pixels of the border.
	clamped := func(at kernel.U32, n kernel.U32) kernel.U32 {
		return at.Max(kernel.U(radius)).Sub(kernel.U(radius)).Min(n.Sub(kernel.U(1)))
	}
	left, top := b.GroupX().Mul(kernel.U(side)), b.GroupY().Mul(kernel.U(side))
	b.ForStep(b.Lane(), kernel.U(tile*tile), kernel.U(side*side), func(i kernel.U32) {
		x := clamped(left.Add(i.Mod(kernel.U(tile))), width)
		y := clamped(top.Add(i.Div(kernel.U(tile))), height)
		near.Set(i, src.At(y.Mul(width).Add(x)))
	})
	b.Barrier()

	x, y := b.GlobalX(), b.GlobalY()
	first := b.LocalY().Mul(kernel.U(tile)).Add(b.LocalX())
	me := near.At(first.Add(kernel.U(radius*tile + radius)))
	sum := kernel.NewVar(b, "sum", kernel.F(0).Splat4())
	weight := kernel.NewVar(b, "weight", kernel.F(0))
	for dy := range 2*radius + 1 { // unrolls
		for dx := range 2*radius + 1 {
			square := (dx-radius)*(dx-radius) + (dy-radius)*(dy-radius)
			other := near.At(first.Add(kernel.U(uint32(dy*tile + dx))))
			d := other.Sub(me)
			far := b.F32(&p.Nearness).Mul(kernel.F(float32(square))).Add(b.F32(&p.Likeness).Mul(d.Dot(d)))
			w := far.Neg().Exp()
			sum.Set(other.Fma(w.Splat4(), sum.Get()))
			weight.Set(weight.Get().Add(w))
		}
	}
	b.If(x.Lt(width).And(y.Lt(height)), func() {
		dst.Set(y.Mul(width).Add(x), sum.Get().Mul(weight.Get().Recip().Splat4()))
	})
})

func main() {
	in, out := "", filepath.Join(os.TempDir(), "rayo-filtered.png")
	if len(os.Args) > 1 {
		in = os.Args[1]
	}
	if len(os.Args) > 2 {
		out = os.Args[2]
	}
	if err := run(context.Background(), os.Stdout, in, out); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer, in, out string) error {
	img := drawing(192, 128)
	if in != "" {
		var err error
		if img, err = picture.Read(in); err != nil {
			return err
		}
	}
	dev, err := device.Open(ctx)
	if err != nil {
		return err
	}
	defer dev.Close()
	size := img.Bounds().Size()
	before := pixels(img)
	after, err := filter(ctx, dev, before, params{uint32(size.X), uint32(size.Y), 0.08, 12})
	if err != nil {
		return err
	}
	if err := picture.Write(out, colours(after, size)); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d x %d pixels on %v: roughness %.4f before, %.4f after; %s\n", size.X, size.Y, dev, roughness(before, size.X), roughness(after, size.X), out)
	return nil
}

// filter returns the pixels, four numbers each, without noise.
func filter(ctx context.Context, dev *device.Device, src []float32, p params) ([]float32, error) {
	k, err := dev.Kernel(ctx, bilateral)
	if err != nil {
		return nil, err
	}
	dst := make([]float32, len(src))
	grid := kernel.Grid(int(p.Width+side-1)/side, int(p.Height+side-1)/side)
	return dst, k.Run(ctx, grid, p, device.In(src), device.Out(dst))
}

// pixels returns red, green, blue and opacity, 0 to 1.
func pixels(img image.Image) []float32 {
	b := img.Bounds()
	x := make([]float32, 0, 4*b.Dx()*b.Dy())
	for i := b.Min.Y; i < b.Max.Y; i++ {
		for j := b.Min.X; j < b.Max.X; j++ {
			r, g, b, a := img.At(j, i).RGBA()
			x = append(x, float32(r)/0xffff, float32(g)/0xffff, float32(b)/0xffff, float32(a)/0xffff)
		}
	}
	return x
}

// colours makes a picture of pixels.
func colours(x []float32, size image.Point) image.Image {
	img := image.NewRGBA(image.Rectangle{Max: size})
	for i := range img.Pix {
		img.Pix[i] = uint8(255*min(max(x[i], 0), 1) + 0.5)
	}
	return img
}

// roughness is the mean difference of neighbours in a row.
func roughness(x []float32, width int) float64 {
	s := 0.0
	for i := 4; i < len(x); i++ {
		if i/4%width != 0 {
			s += math.Abs(float64(x[i] - x[i-4]))
		}
	}
	return s / float64(len(x))
}

// drawing returns discs with hard edges, and noise on them.
func drawing(width, height int) image.Image {
	rnd := rand.New(rand.NewPCG(1, 2))
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			ring := int(math.Hypot(float64(x%80-40), float64(y%80-40))) / 15
			noisy := func(v int) uint8 { return uint8(min(max(v+int(14*rnd.NormFloat64()), 0), 255)) }
			img.SetRGBA(x, y, color.RGBA{noisy(60 + 70*ring), noisy(200 - 60*ring), noisy(90 + x/2), 255})
		}
	}
	return img
}
