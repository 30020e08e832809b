// Command pca finds the principal components of the handwritten digits, and says how much
// of the variance of the pixels each of them explains.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/examples/digits/data"
	"github.com/rayo-go/rayo/op"
)

const kept = 10 // components

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer) error {
	images, labels := data.Images()
	dev, err := device.Open(ctx)
	if err != nil {
		return err
	}
	defer dev.Close()

	b := batch.New(dev)
	pixels := b.Upload(images, len(labels), data.Pixels)
	x := b.Sub(pixels, b.Mean(pixels, op.Axes(0)))
	// The rows of vt are the components, and x·vtᵀ = u·diag(s) holds the coordinates of each image along them.
	u, s, vt := b.SVD(x)
	variance := b.Scale(b.Square(s), 1/float32(len(labels)-1))
	total := b.Sum(b.Var(pixels, op.VarOpts{DDOF: 1, Along: op.Axes(0)}))
	// Reconstruct the images from the first components only.
	first := func(x batch.Value, axis int) batch.Value { return b.Slice(x, axis, 0, kept, 1) }
	made := b.MatMul(b.Mul(first(u, 1), first(s, 0)), first(vt, 0), batch.None)
	lost := b.Scale(b.Sum(b.Square(b.Sub(x, made))), 1/float32(len(labels)-1))
	if err := b.Execute(ctx, variance, total, lost); err != nil {
		return err
	}

	explained, err := batch.Read[float32](ctx, b, variance)
	if err != nil {
		return err
	}
	var sums [2]float32 // the variance of the pixels, and the squared error of the reconstruction
	for i, v := range []batch.Value{total, lost} {
		x, err := batch.Read[float32](ctx, b, v)
		if err != nil {
			return err
		}
		sums[i] = x[0]
	}
	report(w, explained, sums[0], sums[1])
	return nil
}

// report writes the share of the first components in the variance, and two checks.
func report(w io.Writer, explained []float32, total, lost float32) {
	var sum, rest float32
	for i, v := range explained {
		sum += v
		if i >= kept {
			rest += v
			continue
		}
		fmt.Fprintf(w, "component %2d: %4.1f%% of the variance, %4.1f%% with those before it\n", i+1, 100*v/total, 100*sum/total)
	}
	fmt.Fprintf(w, "variance of the pixels %.2f, of all components %.2f\n", total, sum)
	fmt.Fprintf(w, "lost by images of %d components %.2f, variance of the others %.2f\n", kept, lost, rest)
}
