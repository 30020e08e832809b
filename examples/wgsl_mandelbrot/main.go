// Command wgsl_mandelbrot draws the Mandelbrot set with a kernel in WGSL, the
// language of WebGPU: the text stands in mandelbrot.wgsl, and its parameters are a
// Go struct.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"image"
	"image/color"
	"io"
	"log"
	"math"
	"os"
	"path/filepath"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/examples/internal/picture"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/wgsl"
)

//go:embed mandelbrot.wgsl
var text string

// params are the parameters of the text, by name: MaxSteps is max_steps. Go needs
// none of the padding that WGSL has.
type params struct {
	Center   [2]float32
	Pixel    float32
	Size     [2]uint32
	MaxSteps uint32
}

func main() {
	out := filepath.Join(os.TempDir(), "rayo-mandelbrot.png")
	if len(os.Args) > 1 {
		out = os.Args[1]
	}
	if err := run(context.Background(), os.Stdout, out); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer, out string) error {
	// Only WebGPU devices run WGSL.
	dev, err := device.Open(ctx, device.Require(device.WebGPU))
	if errors.Is(err, device.ErrNoDevice) {
		fmt.Fprintf(w, "needs a device of WebGPU: %v\n", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer dev.Close()
	p := params{Center: [2]float32{-0.745, 0.113}, Pixel: 1.2e-5, Size: [2]uint32{960, 640}, MaxSteps: 2000}
	steps, err := mandelbrot(ctx, dev, p)
	if err != nil {
		return err
	}
	inside := 0
	for _, s := range steps {
		if s < 0 {
			inside++
		}
	}
	if err := picture.Write(out, paint(steps, p)); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d x %d points on %s, %.1f%% of them in the set; %s\n", p.Size[0], p.Size[1], dev.Info().Name, 100*float64(inside)/float64(len(steps)), out)
	return nil
}

// mandelbrot returns the steps that each point takes, -1 for those of the set.
func mandelbrot(ctx context.Context, dev *device.Device, p params) ([]float32, error) {
	k, err := dev.Kernel(ctx, wgsl.Source{Text: text, Name: "mandelbrot"})
	if err != nil {
		return nil, err
	}
	steps := make([]float32, p.Size[0]*p.Size[1])
	const lanes = 8 // of a workgroup along x and y
	grid := kernel.Grid(int(p.Size[0]+lanes-1)/lanes, int(p.Size[1]+lanes-1)/lanes)
	return steps, k.Run(ctx, grid, p, device.Out(steps))
}

// paint gives the steps colours: the set is black.
func paint(steps []float32, p params) image.Image {
	img := image.NewRGBA(image.Rect(0, 0, int(p.Size[0]), int(p.Size[1])))
	for i, s := range steps {
		c := color.RGBA{A: 255}
		if s >= 0 {
			phase := math.Sqrt(float64(max(s, 0)))
			wave := func(shift float64) uint8 { return uint8(127.5 + 127.5*math.Sin(0.35*phase+shift)) }
			c.R, c.G, c.B = wave(4.2), wave(4.9), wave(5.8)
		}
		img.SetRGBA(i%int(p.Size[0]), i/int(p.Size[0]), c)
	}
	return img
}
