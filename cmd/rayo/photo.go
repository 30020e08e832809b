package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"math"
	"os"
	"path/filepath"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

//go:embed photo.jpg
var photoJPEG []byte

// recorder is the interface for recording the pipeline. A batch implements it, with values on a
// device, and the reference does, with values in float64. So the pipeline is written only once.
type recorder[V any] interface {
	Upload(data []float32, shape ...int) V
	Reshape(x V, shape ...int) V
	MatMul(a, b, bias V, opts ...op.MatMulOpts) V
	Conv2D(x, w, bias V, opts ...op.Conv2DOpts) V
	Abs(x V) V
	Relu(x V) V
	Scale(x V, s float32) V
	Add(x, y V) V
	Axpy(x, y V, a float32) V
	Clip(x V, lo, hi float32) V
}

// picture is an image in three planes, red, green, blue, each of h rows of w
// numbers from 0 to 1.
type picture struct {
	h, w int
	rgb  []float32
}

// The windows of the pipeline.
var (
	rec709 = []float32{0.2126, 0.7152, 0.0722} // luma of red, green, blue
	blur5  = outer(binomial5, binomial5)
	sobel3 = []float32{
		-1, 0, 1, -2, 0, 2, -1, 0, 1, // the gradient to the right
		-1, -2, -1, 0, 0, 0, 1, 2, 1, // the gradient downwards
	}
	binomial5 = []float32{1. / 16, 4. / 16, 6. / 16, 4. / 16, 1. / 16}
	// hues turns a gradient into a colour by its direction: gold where the
	// light changes sideways, blue where it changes upwards.
	hues = directions(-15, 52, 100)
	glow = three(gaussian(13, 3.5)) // for each channel
)

// margin is the number of pixels by which the windows of blur and edges together exceed the
// borders.
const margin = 3

// neon records the pipeline. It smooths the luma of the photograph, finds its edges, colours them by
// their direction, adds a glow, and adds the result to the dimmed photograph. Every step except the last
// is linear or a magnitude. padded is the photograph with a margin. All uploaded data exist before the
// recording and keep their addresses, so that recording computes nothing and a device can reuse its
// transfers.
func neon[V any](r recorder[V], p, padded picture) V {
	h, w := p.h, p.w
	var none V // no bias
	luma := r.MatMul(r.Upload(rec709, 1, 3), r.Upload(padded.rgb, 3, padded.h*padded.w), none)
	smooth := r.Conv2D(r.Reshape(luma, 1, 1, padded.h, padded.w), r.Upload(blur5, 1, 1, 5, 5), none)
	edges := r.Conv2D(smooth, r.Upload(sobel3, 2, 1, 3, 3), none) // two channels
	lines := r.Abs(r.MatMul(r.Upload(hues, 3, 2), r.Reshape(edges, 2, h*w), none))
	n := len(glow) / 3
	halo := r.Reshape(lines, 1, 3, h, w)
	halo = r.Conv2D(halo, r.Upload(glow, 3, 1, n, 1), none, op.Conv2DOpts{Pad: [2]int{n / 2, 0}, Groups: 3})
	halo = r.Conv2D(halo, r.Upload(glow, 3, 1, 1, n), none, op.Conv2DOpts{Pad: [2]int{0, n / 2}, Groups: 3})
	light := r.Add(r.Scale(lines, 1.5), r.Scale(r.Reshape(halo, 3, h*w), 2))
	return r.Clip(r.Axpy(r.Upload(p.rgb, 3, h*w), light, 0.45), 0, 1)
}

func outer(x, y []float32) []float32 {
	var m []float32
	for _, a := range x {
		for _, b := range y {
			m = append(m, a*b)
		}
	}
	return m
}

// directions returns the unit vectors of angles in degrees, row by row.
func directions(degrees ...float64) []float32 {
	var m []float32
	for _, d := range degrees {
		sin, cos := math.Sincos(d * math.Pi / 180)
		m = append(m, float32(cos), float32(sin))
	}
	return m
}

// gaussian returns a window of n numbers that sum to 1.
func gaussian(n int, sigma float64) []float32 {
	v := make([]float64, n)
	sum := 0.0
	for i := range v {
		x := float64(i - n/2)
		v[i] = math.Exp(-x * x / (2 * sigma * sigma))
		sum += v[i]
	}
	g := make([]float32, n)
	for i := range g {
		g[i] = float32(v[i] / sum)
	}
	return g
}

// three returns a window for each of three channels.
func three(w []float32) []float32 {
	return append(append(append([]float32{}, w...), w...), w...)
}

// decode reads a JPEG.
func decode(data []byte) (picture, error) {
	img, err := jpeg.Decode(bytes.NewReader(data))
	if err != nil {
		return picture{}, err
	}
	r := img.Bounds()
	p := picture{r.Dy(), r.Dx(), device.Alloc(3 * r.Dx() * r.Dy())}
	n := p.h * p.w
	for i := range n {
		c := color.NRGBAModel.Convert(img.At(r.Min.X+i%p.w, r.Min.Y+i/p.w)).(color.NRGBA)
		p.rgb[i], p.rgb[n+i], p.rgb[2*n+i] = float32(c.R)/255, float32(c.G)/255, float32(c.B)/255
	}
	return p, nil
}

// extend returns p with m more pixels on each side, which repeat the pixels of the
// border.
func (p picture) extend(m int) picture {
	e := picture{p.h + 2*m, p.w + 2*m, device.Alloc(3 * (p.h + 2*m) * (p.w + 2*m))}
	for i := range e.rgb {
		plane, y, x := i/(e.h*e.w), i/e.w%e.h-m, i%e.w-m
		y, x = min(max(y, 0), p.h-1), min(max(x, 0), p.w-1)
		e.rgb[i] = p.rgb[(plane*p.h+y)*p.w+x]
	}
	return e
}

// image returns p as an image with 8 bits for each channel.
func (p picture) image() image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, p.w, p.h))
	n := p.h * p.w
	at := func(i int) uint8 { return uint8(min(max(p.rgb[i], 0), 1)*255 + 0.5) }
	for i := range n {
		img.SetNRGBA(i%p.w, i/p.w, color.NRGBA{at(i), at(n + i), at(2*n + i), 255})
	}
	return img
}

// writeBeside writes two pictures side by side as a PNG file in dir and returns its path.
func writeBeside(dir, name string, left, right picture) (string, error) {
	path, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		return "", err
	}
	const gap = 6
	img := image.NewNRGBA(image.Rect(0, 0, left.w+gap+right.w, max(left.h, right.h)))
	draw.Draw(img, img.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(img, image.Rect(0, 0, left.w, left.h), left.image(), image.Point{}, draw.Src)
	draw.Draw(img, image.Rect(left.w+gap, 0, left.w+gap+right.w, right.h), right.image(), image.Point{}, draw.Src)
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		return "", err
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		return "", fmt.Errorf("%w (-o DIR writes elsewhere)", err)
	}
	return path, nil
}
