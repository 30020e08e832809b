// Command moving_average smooths a stream of numbers, block by block, with one plan.
// The last elements of a block, which the next block needs, stay on the device.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"os"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

const (
	width = 5      // numbers that are averaged
	block = 1 << 8 // numbers at a time
)

func main() {
	r, w := io.Pipe()
	go func() { w.CloseWithError(signal(w, 10*block)) }()
	if err := run(context.Background(), os.Stdout, r); err != nil {
		log.Fatal(err)
	}
}

// signal writes n numbers of a wave with noise as little-endian float32.
func signal(w io.Writer, n int) error {
	out, noise := bufio.NewWriter(w), uint32(1)
	for i := range n {
		noise = noise*1664525 + 1013904223
		v := math.Sin(float64(i)/40) + float64(noise>>16)/(1<<16) - 0.5
		if err := binary.Write(out, binary.LittleEndian, float32(v)); err != nil {
			return err
		}
	}
	return out.Flush()
}

// run reads blocks of float32 until the stream ends and writes how much smoother their
// averages are.
func run(ctx context.Context, w io.Writer, r io.Reader) error {
	dev, err := device.Open(ctx)
	if err != nil {
		return err
	}
	defer dev.Close()
	last, err := device.Upload(ctx, dev, make([]float32, width-1)) // of the block before
	if err != nil {
		return err
	}
	defer last.Close()

	b := batch.New(dev)
	x := b.Upload(make([]float32, block))
	all := b.Concat(0, b.Use(last), x)
	mean := b.Mean(b.SlidingWindow(all, 0, width, 1, 1), op.Axes(-1))
	rough := func(v batch.Value) batch.Value { return b.NormL2(b.Diff(v, 0, 1)) }
	before, after := rough(x), rough(mean)
	b.Store(last, 0, b.Slice(x, 0, -(width-1), op.End, 1))
	plan, err := b.Compile(ctx, before, after)
	if err != nil {
		return err
	}
	defer plan.Close()

	for i := 0; ; i++ {
		data, err := device.ReadFloats(r, block)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var was, is [1]float32
		if err := plan.Run(ctx, batch.BindInput(x, data), batch.BindOutput(before, was[:]), batch.BindOutput(after, is[:])); err != nil {
			return err
		}
		fmt.Fprintf(w, "block %d: steps of %.2f became %.2f\n", i, was[0]/16, is[0]/16)
	}
}
