// Command pagesize is the smallest program that computes something with rayo. Its size is the
// minimum that a page has to load; page_size.sh compares it with a limit.
package main

import (
	"context"

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
	println(x[0], x[1])
}
