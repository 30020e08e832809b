//go:build js

// Command browser changes the colours of a picture in a page, on the GPU of the visitor.
package main

import (
	"context"
	"fmt"
	"syscall/js"
	"time"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
)

var document = js.Global().Get("document")

func element(id string) js.Value { return document.Call("getElementById", id) }

func say(id, format string, args ...any) {
	element(id).Set("textContent", fmt.Sprintf(format, args...))
}

func main() {
	if err := run(context.Background()); err != nil {
		say("status", "%v", err)
	}
}

func run(ctx context.Context) error {
	say("status", "opening a device …")
	dev, err := device.Open(ctx)
	if err != nil {
		return err
	}
	defer dev.Close()
	say("device", "%v: %s, %s", dev, dev.Info().Name, dev.Info().Detail)
	for _, r := range dev.Refused() {
		if r.Kind == device.WebGPU {
			say("why", "No GPU: %v", r.Err)
		}
	}

	// A function that JavaScript calls may not wait for the device: the page would stand
	// still. It leaves word, and this goroutine does the work.
	changed, product := make(chan struct{}, 1), make(chan struct{}, 1)
	on(changed, "input", "exposure", "contrast", "saturation")
	on(product, "click", "product")
	changed <- struct{}{}

	p, err := newPicture(ctx, dev, element("picture"))
	if err != nil {
		return err
	}
	defer p.plan.Close()
	for {
		select {
		case <-changed:
			if err := p.draw(ctx); err != nil {
				return err
			}
		case <-product:
			if err := multiply(ctx, dev, 512); err != nil {
				return err
			}
		}
	}
}

// on has an event of some elements leave word in c, unless it is there already.
func on(c chan struct{}, event string, ids ...string) {
	f := js.FuncOf(func(js.Value, []js.Value) any {
		select {
		case c <- struct{}{}:
		default:
		}
		return nil
	})
	for _, id := range ids {
		element(id).Call("addEventListener", event, f)
	}
}

// picture is the content of a canvas: red, green and blue from 0 to 1, and the plan that
// changes them.
type picture struct {
	context  js.Value // of the canvas
	image    js.Value // ImageData
	pixels   []byte   // its bytes
	in, out  [3][]float32
	settings [3][]float32 // exposure, contrast, saturation, one number each
	plan     *batch.Plan
}

func newPicture(ctx context.Context, dev *device.Device, canvas js.Value) (*picture, error) {
	p := &picture{context: canvas.Call("getContext", "2d", map[string]any{"willReadFrequently": true})}
	p.image = p.context.Call("getImageData", 0, 0, canvas.Get("width"), canvas.Get("height"))
	p.pixels = make([]byte, p.image.Get("data").Length())
	js.CopyBytesToGo(p.pixels, p.image.Get("data"))
	n := len(p.pixels) / 4
	b := batch.New(dev)
	var colour, setting [3]batch.Value
	for c := range colour {
		p.in[c], p.out[c], p.settings[c] = make([]float32, n), make([]float32, n), make([]float32, 1)
		for i := range n {
			p.in[c][i] = float32(p.pixels[4*i+c]) / 255
		}
		colour[c], setting[c] = b.Upload(p.in[c], n), b.Upload(p.settings[c], 1)
	}
	// The plan reads the slices anew each time it runs: moving a slider compiles nothing.
	grey := b.Add(b.Add(b.Scale(colour[0], 0.299), b.Scale(colour[1], 0.587)), b.Scale(colour[2], 0.114))
	for c := range colour {
		v := b.Add(grey, b.Mul(b.Sub(colour[c], grey), setting[2]))
		v = b.Add(b.Mul(b.AddScalar(v, -0.5), setting[1]), b.AddScalar(setting[0], 0.5))
		batch.ReadInto(b, b.Clip(v, 0, 1), p.out[c])
	}
	var err error
	p.plan, err = b.Compile(ctx)
	return p, err
}

// draw computes the picture with the settings of the page.
func (p *picture) draw(ctx context.Context) error {
	for i, id := range []string{"exposure", "contrast", "saturation"} {
		p.settings[i][0] = float32(element(id).Get("valueAsNumber").Float())
	}
	began := time.Now()
	if err := p.plan.Run(ctx); err != nil {
		return err
	}
	took := time.Since(began)
	for c := range p.out {
		for i, v := range p.out[c] {
			p.pixels[4*i+c] = byte(v*255 + 0.5)
		}
	}
	js.CopyBytesToJS(p.image.Get("data"), p.pixels)
	p.context.Call("putImageData", p.image, 0, 0)
	say("status", "%d pixels in %.1f ms, to the device and back", len(p.pixels)/4, 1e3*took.Seconds())
	return nil
}

// multiply says how fast the device multiplies matrices of n rows and columns.
func multiply(ctx context.Context, dev *device.Device, n int) error {
	a, c := make([]float32, n*n), make([]float32, n*n)
	for i := range a {
		a[i] = float32(i%7) - 3
	}
	say("speed", "multiplying …")
	// The first compiles the kernel.
	for range 2 {
		began := time.Now()
		if err := dev.MatMul(ctx, c, a, a, nil, n, n, n); err != nil {
			return err
		}
		took := time.Since(began)
		say("speed", "%.1f ms, %.2f GFLOP/s", 1e3*took.Seconds(), 2*float64(n)*float64(n)*float64(n)/took.Seconds()/1e9)
	}
	return nil
}
