// Command imagefilter sharpens a picture: it blurs the picture in two passes and
// adds the difference between the picture and the blurred one to the picture.
package main

import (
	"context"
	"flag"
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
	"github.com/rayo-go/rayo/op"
)

func main() {
	f := flag.NewFlagSet("imagefilter", flag.ExitOnError)
	sigma := f.Float64("sigma", 2, "width of the blur in pixels")
	amount := f.Float64("amount", 1.5, "how much of the detail is added")
	f.Usage = func() {
		fmt.Fprintln(f.Output(), "usage: imagefilter [flags] [picture [result.png]]\n\nWithout a picture it draws one.")
		f.PrintDefaults()
	}
	f.Parse(os.Args[1:])
	in, out := f.Arg(0), f.Arg(1)
	if out == "" {
		out = filepath.Join(os.TempDir(), "rayo-sharpened.png")
	}
	if err := run(context.Background(), os.Stdout, in, out, *sigma, *amount); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer, in, out string, sigma, amount float64) error {
	if !(sigma > 0 && sigma <= 50) {
		return fmt.Errorf("a blur of %v pixels: it must be above 0 and at most 50", sigma)
	}
	img := drawing(320, 240)
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

	width, height := img.Bounds().Dx(), img.Bounds().Dy()
	pixels := planes(img)
	if err := sharpen(ctx, dev, pixels, height, width, sigma, float32(amount)); err != nil {
		return err
	}
	if err := picture.Write(out, colours(pixels, width, height)); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d×%d pixels sharpened: %s\n", width, height, out)
	return nil
}

// sharpen replaces the three planes of a picture by x + amount·(x - blur(x)),
// between 0 and 1, in one batch.
func sharpen(ctx context.Context, dev *device.Device, planes []float32, height, width int, sigma float64, amount float32) error {
	window := gaussian(sigma)
	n := len(window)
	b := batch.New(dev)
	x := b.Upload(planes, 1, 3, height, width)
	w := b.Upload(append(append(append([]float32{}, window...), window...), window...), 3, 1, n, 1)
	// Each plane is a group of its own, blurred by columns, then by rows. The
	// zeros around the picture darken the blur near its borders; dividing by
	// the blur of ones makes up for them.
	blur := func(v batch.Value) batch.Value {
		v = b.Conv2D(v, w, batch.None, op.Conv2DOpts{Pad: [2]int{n / 2, 0}, Groups: 3})
		return b.Conv2D(v, b.Reshape(w, 3, 1, 1, n), batch.None, op.Conv2DOpts{Pad: [2]int{0, n / 2}, Groups: 3})
	}
	ones := make([]float32, len(planes))
	for i := range ones {
		ones[i] = 1
	}
	smooth := b.Div(blur(x), blur(b.Upload(ones, 1, 3, height, width)))
	sharp := b.Clip(b.Axpy(b.Sub(x, smooth), x, amount), 0, 1)
	batch.ReadInto(b, sharp, planes)
	return b.Execute(ctx)
}

// gaussian returns a window that sums to 1 and reaches three times sigma to
// either side.
func gaussian(sigma float64) []float32 {
	r := int(math.Ceil(3 * sigma))
	v := make([]float32, 2*r+1)
	sum := 0.0
	for i := range v {
		d := float64(i - r)
		sum += math.Exp(-d * d / (2 * sigma * sigma))
	}
	for i := range v {
		d := float64(i - r)
		v[i] = float32(math.Exp(-d*d/(2*sigma*sigma)) / sum)
	}
	return v
}

// planes returns red, green and blue of a picture from 0 to 1, one plane after
// the other.
func planes(img image.Image) []float32 {
	r := img.Bounds()
	n := r.Dx() * r.Dy()
	p := make([]float32, 3*n)
	for i := range n {
		red, green, blue, _ := img.At(r.Min.X+i%r.Dx(), r.Min.Y+i/r.Dx()).RGBA()
		p[i], p[n+i], p[2*n+i] = float32(red)/0xffff, float32(green)/0xffff, float32(blue)/0xffff
	}
	return p
}

// colours makes a picture of planes.
func colours(p []float32, width, height int) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	n := width * height
	at := func(i int) uint8 { return uint8(p[i]*255 + 0.5) }
	for i := range n {
		img.SetNRGBA(i%width, i/width, color.NRGBA{at(i), at(n + i), at(2*n + i), 255})
	}
	return img
}

// drawing returns soft rings that are finer towards the corner.
func drawing(width, height int) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range width * height {
		x, y := i%width, i/width
		v := 0.5 + 0.2*math.Cos(float64(x*x+y*y)/900)
		img.SetNRGBA(x, y, color.NRGBA{uint8(255 * v), uint8(200 * v), uint8(255 * (1 - v)), 255})
	}
	return img
}
