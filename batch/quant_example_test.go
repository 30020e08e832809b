package batch_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/op"
)

// Weights stay quantised on the device: here two rows of 32, of 8 bits each.
func ExampleBatch_MatMulQ() {
	ctx := context.Background()
	dev, err := device.Open(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()

	weights := make([]float32, 2*32)
	for i := range weights {
		weights[i] = float32(i/32 + 1) // a row of ones, a row of twos
	}
	raw := make([]byte, 2*block.Q8_0.Bytes())
	if err := block.Q8_0.Quantize(raw, weights); err != nil {
		log.Fatal(err)
	}
	w, err := device.UploadBlocks(ctx, dev, raw, op.Q8_0, 2, 32)
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()

	x := make([]float32, 32)
	x[0], x[31] = 10, -4
	b := batch.New(dev)
	y := b.MatMulQ(b.Upload(x, 1, 32), b.Use(w), batch.None)
	if err := b.Execute(ctx); err != nil {
		log.Fatal(err)
	}
	out, err := batch.Read[float32](ctx, b, y)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.2f\n", out)
	// Output: [6.00 12.00]
}
