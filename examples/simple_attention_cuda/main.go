// Command simple_attention_cuda computes attention by parts, scores, softmax and
// sum, and in one operation, on the best device of the machine.
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

	const heads, length, size = 8, 256, 64
	rnd := rand.New(rand.NewPCG(1, 2))
	random := func() []float32 {
		x := make([]float32, heads*length*size)
		for i := range x {
			x[i] = float32(rnd.NormFloat64())
		}
		return x
	}
	b := batch.New(dev)
	q, k, v := b.Upload(random(), heads, length, size), b.Upload(random(), heads, length, size), b.Upload(random(), heads, length, size)

	// By parts: each query is multiplied by all keys, the scores become weights,
	// and the values are summed with them. The scores are a square that grows
	// with the length of the text.
	scores := b.Scale(b.MatMul(q, k, batch.None, op.MatMulOpts{TransB: true}), 1/float32(math.Sqrt(size)))
	parts := b.MatMul(b.Softmax(scores), v, batch.None)

	// In one operation, which keeps few scores at a time.
	whole := b.Attention(q, k, v, batch.AttentionInputs{})

	if err := b.Execute(ctx, parts, whole); err != nil {
		return err
	}
	x, err := batch.Read[float32](ctx, b, parts)
	if err != nil {
		return err
	}
	y, err := batch.Read[float32](ctx, b, whole)
	if err != nil {
		return err
	}
	worst := 0.0
	for i := range x {
		worst = max(worst, math.Abs(float64(x[i]-y[i])))
	}
	if worst > 1e-5 {
		return fmt.Errorf("the two differ by %g", worst)
	}
	fmt.Fprintf(w, "%d heads of %d, %d queries and keys: the two agree\n", heads, size, length)
	fmt.Fprintf(w, "scores by parts: %d KiB; keys and values: %d KiB\n", 4*heads*length*length>>10, 2*4*heads*length*size>>10)
	return nil
}
