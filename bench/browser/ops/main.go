//go:build js

// Command ops runs operations on the CPU of a page, for ops.mjs to compare with others.
package main

import (
	"context"
	"fmt"
	"syscall/js"
	"time"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/wasm/bridge"
)

const (
	million    = 1000 * 1000
	rows, cols = 1000, 1000
)

// fill returns numbers between -0.5 and 0.5, as ops.mjs has them.
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

func main() {
	ctx := context.Background()
	dev, err := device.Open(ctx, device.Require(device.CPU))
	if err != nil {
		panic(err)
	}
	y := make([]float32, 64*128*128+cols*cols)
	all := operations(ctx, dev, y)
	js.Global().Call("rayoReady", map[string]any{
		"detail": dev.Info().Detail,
		// run returns the milliseconds of one run among some, and the first results.
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
