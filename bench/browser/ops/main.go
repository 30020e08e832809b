//go:build js

// Command ops runs operations in a page: on the CPU for ops.mjs, which compares them with others, or by WebGPU for
// webgpu.mjs.
package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall/js"
	"time"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
	"github.com/rayo-go/rayo/wasm/bridge"
)

const (
	million    = 1000 * 1000
	rows, cols = 1000, 1000
)

// fill returns numbers between -0.5 and 0.5, the same as ops.mjs.
func fill(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i*7%13)/13 - 0.5
	}
	return x
}

// operations returns functions that run operations, by name; results go to y.
func operations(ctx context.Context, dev *device.Device, y []float32) map[string]func() error {
	x, one, zero := fill(million), make([]float32, cols), make([]float32, cols)
	for i := range one {
		one[i] = 1
	}
	all := map[string]func() error{
		"relu":      func() error { return dev.Relu(ctx, y[:million], x) },
		"add":       func() error { return dev.Add(ctx, y[:million], x, x) },
		"tanh":      func() error { return dev.Tanh(ctx, y[:million], x) },
		"sigmoid":   func() error { return dev.Sigmoid(ctx, y[:million], x) },
		"gelu":      func() error { return dev.Gelu(ctx, y[:million], x) },
		"softmax":   func() error { return dev.Softmax(ctx, y[:million], x, rows, cols) },
		"layernorm": func() error { return dev.LayerNorm(ctx, y[:million], x, one, zero, rows, cols) },
		"dot": func() (err error) {
			y[0], err = dev.Dot(ctx, x, x)
			return err
		},
	}
	for _, n := range []int{4_000, 64_000} { // in the first and the second cache
		all[fmt.Sprintf("dot%d", n)] = func() (err error) {
			y[0], err = dev.Dot(ctx, x[:n], x[:n])
			return err
		}
	}
	for _, n := range []int{256, 512, 1024} {
		a := fill(n * n)
		all[fmt.Sprintf("matmul%d", n)] = func() error { return dev.MatMul(ctx, y[:n*n], a, a, nil, n, n, n) }
	}
	image, weights := fill(64*128*128), fill(64*64*3*3)
	all["conv2d"] = func() error {
		return dev.Conv2D(ctx, y[:64*128*128], image, weights, nil, [4]int{1, 64, 128, 128}, [4]int{64, 64, 3, 3}, op.Conv2DOpts{Pad: [2]int{1, 1}})
	}
	return all
}

// resident returns functions that run operations over arrays in the memory of a GPU, by name; results go to y.
func resident(ctx context.Context, dev *device.Device, y []float32) (map[string]func() error, error) {
	all := map[string]func() error{}
	add := func(name string, n int, shape []int, f func(b *batch.Batch, x batch.Value) batch.Value) error {
		x, err := device.Upload(ctx, dev, fill(n), shape...)
		if err != nil {
			return err
		}
		b := batch.New(dev)
		v := f(b, b.Use(x))
		p, err := b.Compile(ctx, v)
		if err != nil {
			return err
		}
		all[name] = func() error { return p.Run(ctx, batch.BindOutput(v, y[:n])) }
		return nil
	}
	err := errors.Join(
		add("relu", million, []int{million}, func(b *batch.Batch, x batch.Value) batch.Value { return b.Relu(x) }),
		add("softmax", million, []int{rows, cols}, func(b *batch.Batch, x batch.Value) batch.Value { return b.Softmax(x) }))
	for _, n := range []int{512, 1024} {
		err = errors.Join(err, add(fmt.Sprintf("matmul%d", n), n*n, []int{n, n}, func(b *batch.Batch, x batch.Value) batch.Value {
			return b.MatMul(x, x, batch.None)
		}))
	}
	return all, err
}

// open returns the device that the page names, and its operations.
func open(ctx context.Context, y []float32) (*device.Device, map[string]func() error, error) {
	if js.Global().Get("rayoDevice").String() != "webgpu" {
		dev, err := device.Open(ctx, device.Require(device.CPU))
		if err != nil {
			return nil, nil, err
		}
		return dev, operations(ctx, dev, y), nil
	}
	dev, err := device.Open(ctx, device.Require(device.WebGPU), device.WithName("software"))
	if err != nil {
		return nil, nil, err
	}
	all, err := resident(ctx, dev, y)
	return dev, all, err
}

// call returns the median microseconds of a call of the shortest kernel of package simd.
func call() float64 {
	const rounds, times = 15, 20_000
	relu, x := simd.Map("relu"), make([]float32, 4)
	var us [rounds]float64
	for i := range us {
		began := time.Now()
		for range times {
			relu(&x[0], &x[0], nil, nil, len(x), nil)
		}
		us[i] = float64(time.Since(began)) / 1e3 / times
	}
	slices.Sort(us[:])
	return us[rounds/2]
}

func main() {
	y := make([]float32, 64*128*128+cols*cols)
	dev, all, err := open(context.Background(), y)
	if err != nil {
		panic(err)
	}
	js.Global().Call("rayoReady", map[string]any{
		"detail": dev.Info().Detail,
		"call":   bridge.Func(func([]js.Value) (any, error) { return call(), nil }),
		// run returns the mean milliseconds of several runs, and the first results.
		"run": bridge.Func(func(args []js.Value) (any, error) {
			f, times := all[args[0].String()], args[1].Int()
			began := time.Now()
			for range times {
				if err := f(); err != nil {
					return nil, err
				}
			}
			ms := float64(time.Since(began)) / 1e6 / float64(times)
			first, err := bridge.TypedArray(y[:8])
			return map[string]any{"ms": ms, "first": first}, err
		}),
	})
	select {}
}
