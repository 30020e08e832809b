// Command q4k_gemm multiplies by weights of four and a half bits each, which stay
// as they are in the memory of the device.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/op"
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

	// Weights of a layer from 1024 numbers to 512, and some inputs.
	const rows, in, out = 4, 1024, 512
	rnd := rand.New(rand.NewPCG(1, 2))
	weights, x := make([]float32, out*in), make([]float32, rows*in)
	for i := range weights {
		weights[i] = float32(rnd.NormFloat64() / math.Sqrt(in))
	}
	for i := range x {
		x[i] = float32(rnd.NormFloat64())
	}

	// Blocks of 256 weights: 144 bytes, as GGUF files have them. Such a file's
	// bytes could go to the device as they are.
	format := block.ByName("Q4_K")
	size, err := format.Size(len(weights))
	if err != nil {
		return err
	}
	blocks := make([]byte, size)
	if err := format.Quantize(blocks, weights); err != nil {
		return err
	}
	fmt.Fprintf(w, "weights: %d KiB, as float32 %d KiB\n", len(blocks)>>10, 4*len(weights)>>10)
	table, err := device.UploadBlocks(ctx, dev, blocks, op.Q4_K, out, in)
	if err != nil {
		return err
	}

	b := batch.New(dev)
	y := b.MatMulQ(b.Upload(x, rows, in), b.Use(table), batch.None)
	if err := b.Execute(ctx, y); err != nil {
		return err
	}
	got, err := batch.Read[float32](ctx, b, y)
	if err != nil {
		return err
	}

	// Two errors: that of the weights, which is the format's, and that of the
	// device's arithmetic, against the same blocks in float64.
	rounded := make([]float32, len(weights))
	if err := format.Dequantize(rounded, blocks); err != nil {
		return err
	}
	fmt.Fprintf(w, "error of the format:     %.0e of the length\n", distance(got, x, weights, in, out))
	if e := distance(got, x, rounded, in, out); e > 1e-5 {
		return fmt.Errorf("the device is off by %g", e)
	}
	fmt.Fprintln(w, "error of the arithmetic: below 1e-05")
	return nil
}

// distance returns how far y is from x wᵀ, as a part of its length.
func distance(y, x, w []float32, in, out int) float64 {
	d, length := 0.0, 0.0
	for i := range y {
		want := 0.0
		for k := range in {
			want += float64(x[i/out*in+k]) * float64(w[i%out*in+k])
		}
		d += (float64(y[i]) - want) * (float64(y[i]) - want)
		length += want * want
	}
	return math.Sqrt(d / length)
}
