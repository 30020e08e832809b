//go:build js

// Command page is the program of the demo site. It opens a device and runs the computations
// that site.mjs requests, with promises.
package main

import (
	"context"
	"fmt"
	"os"
	"syscall/js"
	"time"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/wasm/bridge"
	"github.com/rayo-go/rayo/wasm/site/compute"
)

func main() {
	p := &page{ctx: context.Background()}
	names := []any{}
	for _, name := range compute.Filters {
		names = append(names, name)
	}
	methods := map[string]any{"filters": names}
	turn := make(chan struct{}, 1)
	for name, f := range map[string]func([]js.Value) (any, error){
		"open": p.open, "filter": p.filter, "mandelbrot": p.mandelbrot, "digit": p.digit, "sample": p.sample, "bench": p.bench,
	} {
		methods[name] = bridge.Func(func(args []js.Value) (any, error) {
			// Calls run one after the other, because they share plans, and open closes the device.
			turn <- struct{}{}
			defer func() { <-turn }()
			return f(args)
		})
	}
	js.Global().Call("rayoReady", methods)
	select {}
}

// page is the device with the plans that were compiled for it.
type page struct {
	ctx    context.Context
	dev    *device.Device
	filt   *compute.Filter
	of     picture // the picture for which filt is compiled
	digits *compute.Digits
}

// picture is the size and the kind of a compiled filter.
type picture struct {
	filter        string
	width, height int
}

// open closes the device and opens the device with the given name, in the syntax of RAYO_DEVICE, or
// the best device for "". It returns the device, and why the devices before it in the order of preference
// were not opened.
func (p *page) open(args []js.Value) (any, error) {
	p.close()
	if err := os.Setenv("RAYO_DEVICE", args[0].String()); err != nil {
		return nil, err
	}
	var err error
	if p.dev, err = device.Open(p.ctx); err != nil {
		return nil, err
	}
	refused := []any{}
	for _, r := range p.dev.Refused() {
		refused = append(refused, map[string]any{"kind": r.Kind.String(), "reason": r.Err.Error()})
	}
	info := p.dev.Info()
	return map[string]any{"id": info.String(), "kind": info.Kind.String(), "name": info.Name, "detail": info.Detail, "refused": refused}, nil
}

func (p *page) close() {
	if p.filt != nil {
		p.filt.Close()
	}
	if p.digits != nil {
		p.digits.Close()
	}
	if p.dev != nil {
		p.dev.Close()
	}
	p.dev, p.filt, p.digits, p.of = nil, nil, nil, picture{}
}

func (p *page) opened() error {
	if p.dev == nil {
		return fmt.Errorf("no device is open: call open first: %w", device.ErrNoDevice)
	}
	return nil
}

// ints stores arguments that are integers.
func ints(args []js.Value, to ...*int) error {
	for i, p := range to {
		var err error
		if *p, err = bridge.Int(args[i]); err != nil {
			return err
		}
	}
	return nil
}

// timed returns the result of a call: the time of the device in milliseconds.
func timed(began time.Time) map[string]any {
	return map[string]any{"ms": float64(time.Since(began)) / 1e6}
}

// filter changes a picture in place. The arguments are name, strength, RGBA, width and height.
func (p *page) filter(args []js.Value) (any, error) {
	if err := p.opened(); err != nil {
		return nil, err
	}
	of := picture{filter: args[0].String()}
	if err := ints(args[3:], &of.width, &of.height); err != nil {
		return nil, err
	}
	rgba, err := bridge.Slice[uint8](args[2])
	if err != nil {
		return nil, err
	}
	if p.filt == nil || p.of != of {
		if p.filt != nil {
			p.filt.Close()
		}
		p.filt, err = compute.NewFilter(p.ctx, p.dev, of.filter, of.width, of.height)
		if err != nil {
			p.filt = nil
			return nil, err
		}
		p.of = of
	}
	began := time.Now()
	if err := p.filt.Run(p.ctx, rgba, float32(args[1].Float())); err != nil {
		return nil, err
	}
	took := timed(began)
	return took, bridge.CopyToJS(args[2], rgba)
}

// mandelbrot paints a picture. The arguments are RGBA, width, height, x, y, span and steps.
func (p *page) mandelbrot(args []js.Value) (any, error) {
	if err := p.opened(); err != nil {
		return nil, err
	}
	var width, height, steps int
	if err := ints(args[1:], &width, &height); err != nil {
		return nil, err
	}
	if err := ints(args[6:], &steps); err != nil {
		return nil, err
	}
	rgba, err := bridge.Slice[uint8](args[0])
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := compute.Mandelbrot(p.ctx, p.dev, rgba, width, height, args[3].Float(), args[4].Float(), args[5].Float(), steps); err != nil {
		return nil, err
	}
	took := timed(began)
	return took, bridge.CopyToJS(args[0], rgba)
}

// read recognises the digit in an image of the network's size.
func (p *page) read(pixels []float32) (map[string]any, error) {
	if err := p.opened(); err != nil {
		return nil, err
	}
	if p.digits == nil {
		var err error
		if p.digits, err = compute.NewDigits(p.ctx, p.dev); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	chances, err := p.digits.Read(p.ctx, pixels)
	if err != nil {
		return nil, err
	}
	r := timed(began)
	if r["chances"], err = bridge.TypedArray(chances); err != nil {
		return nil, err
	}
	r["pixels"], err = bridge.TypedArray(pixels)
	return r, err
}

// digit recognises the digit in a drawing. The arguments are ink, width and height.
func (p *page) digit(args []js.Value) (any, error) {
	var width, height int
	if err := ints(args[1:], &width, &height); err != nil {
		return nil, err
	}
	ink, err := bridge.Slice[uint8](args[0])
	if err != nil {
		return nil, err
	}
	pixels, err := compute.Reduce(ink, width, height)
	if err != nil {
		return nil, err
	}
	return p.read(pixels)
}

// sample recognises an image that the network was not trained on. The argument is its number.
func (p *page) sample(args []js.Value) (any, error) {
	var i int
	if err := ints(args, &i); err != nil {
		return nil, err
	}
	pixels, shown := compute.Sample(i)
	r, err := p.read(pixels)
	if err != nil {
		return nil, err
	}
	r["shown"] = shown
	return r, nil
}

// bench runs a benchmark. The argument is its name.
func (p *page) bench(args []js.Value) (any, error) {
	if err := p.opened(); err != nil {
		return nil, err
	}
	t, err := compute.Bench(p.ctx, p.dev, args[0].String())
	if err != nil {
		return nil, err
	}
	return map[string]any{"device": t.Device, "plain": t.Plain}, nil
}
