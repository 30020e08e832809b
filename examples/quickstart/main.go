// Command quickstart opens the best device of the machine and runs single
// operations on slices.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/rayo-go/rayo/device"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer) error {
	dev, err := device.Open(ctx) // a GPU if there is one that works, else the CPU
	if err != nil {
		return err
	}
	defer dev.Close()

	// A call returns when its result is in dst.
	x := []float32{1, 2, -3, 4}
	y := make([]float32, len(x))
	if err := dev.Relu(ctx, y, x); err != nil {
		return err
	}
	fmt.Fprintln(w, "relu   ", y)

	// Reductions return a number.
	s, err := dev.Dot(ctx, x, y)
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "dot    ", s)

	// Row operations and reductions along rows take the number of rows and
	// columns. Results may go over an operand.
	m := []float32{
		1, 2, 3,
		0, 0, 0,
	}
	if err := dev.Softmax(ctx, m, m, 2, 3); err != nil {
		return err
	}
	fmt.Fprintf(w, "softmax %.3f\n", m)

	// Every call has a form that does not wait. Until its end the slices
	// belong to it.
	p := dev.TanhAsync(ctx, y, x)
	if err := p.Wait(ctx); err != nil {
		return err
	}
	fmt.Fprintf(w, "tanh    %.3f\n", y)

	// Mistakes are errors, which name the operation, the shapes and the device.
	err = dev.Add(ctx, y, x, x[:2])
	fmt.Fprintln(w, "mistake", err)
	return nil
}
