// Command batch records operations, runs them in one round trip, and replays
// them with other operands.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer) error {
	dev, err := device.Open(ctx)
	if err != nil {
		return err
	}
	defer dev.Close()

	// Recording computes nothing. Every operation returns a value that later
	// ones use; the first mistake is kept for Execute to return.
	b := batch.New(dev)
	x := b.Upload([]float32{1, 2, -3, 4})
	y := b.Scale(b.Relu(x), 2)
	if err := b.Execute(ctx); err != nil {
		return err
	}
	out, err := batch.Read[float32](ctx, b, y) // it came back with the same submission
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "executed", out)

	// A buffer stays on the device between batches. This one adds up
	// the inputs.
	seen, err := device.Upload(ctx, dev, []float32{0, 0, 0, 0})
	if err != nil {
		return err
	}
	b.Reset()
	in := b.Upload(make([]float32, 4))
	root := b.Sqrt(b.Add(b.Square(in), b.Const(9)))
	b.Store(seen, 0, b.Add(b.Use(seen), in))

	// A plan is a compiled recording, which can run many times. Printing it lists its
	// kernels: the first one is fused from three operations.
	plan, err := b.Compile(ctx, root)
	if err != nil {
		return err
	}
	fmt.Fprint(w, plan)
	result := make([]float32, 4)
	for _, v := range []float32{0, 4, 40} {
		if err := plan.Run(ctx, batch.BindInput(in, []float32{v, v, v, v}), batch.BindOutput(root, result)); err != nil {
			return err
		}
		fmt.Fprintln(w, "replayed", result)
	}
	if err := device.Read(ctx, result, seen); err != nil {
		return err
	}
	fmt.Fprintln(w, "stored  ", result)
	return nil
}
