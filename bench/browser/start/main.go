//go:build js

// Command start opens the best device, computes relu of two numbers, and gives the results to the page: the
// smallest program of rayo, whose start start.mjs measures.
package main

import (
	"context"
	"syscall/js"

	"github.com/rayo-go/rayo/device"
)

func main() {
	ctx := context.Background()
	dev, err := device.Open(ctx)
	if err != nil {
		panic(err)
	}
	x := []float32{-1, 2}
	if err := dev.Relu(ctx, x, x); err != nil {
		panic(err)
	}
	js.Global().Call("first", dev.String(), x[0], x[1])
}
