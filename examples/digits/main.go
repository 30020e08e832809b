// Command digits reads handwritten digits with a small trained network, all of
// them in one batch.
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"math"
	"os"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/examples/digits/data"
	"github.com/rayo-go/rayo/op"
)

// The network is relu(x·W1 + b1)·W2 + b2.
const (
	pixels = data.Pixels
	hidden = 64
	digits = 10
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer) error {
	images, labels := data.Images()
	w1, rest := readFloats(data.Weights, pixels*hidden)
	b1, rest := readFloats(rest, hidden)
	w2, rest := readFloats(rest, hidden*digits)
	b2, _ := readFloats(rest, digits)

	dev, err := device.Open(ctx)
	if err != nil {
		return err
	}
	defer dev.Close()

	b := batch.New(dev)
	x := b.Scale(b.Upload(images, len(labels), pixels), 1.0/16)
	h := b.MatMul(x, b.Upload(w1, pixels, hidden), b.Upload(b1), op.MatMulOpts{Act: op.Relu})
	score := b.MatMul(h, b.Upload(w2, hidden, digits), b.Upload(b2))
	best := b.ArgMax(score, op.Axes(-1))
	if err := b.Execute(ctx, best); err != nil {
		return err
	}
	guess, err := batch.Read[int32](ctx, b, best)
	if err != nil {
		return err
	}

	right, wrong := 0, -1
	for i, g := range guess {
		if int(g) == labels[i] {
			right++
		} else if wrong < 0 {
			wrong = i
		}
	}
	fmt.Fprintf(w, "%d of %d right (%.1f%%)\n", right, len(labels), 100*float64(right)/float64(len(labels)))
	show(w, images, 0, "the first one, read as", guess[0])
	if wrong >= 0 {
		show(w, images, wrong, fmt.Sprintf("a %d, read as", labels[wrong]), guess[wrong])
	}
	return nil
}

// show draws image i.
func show(w io.Writer, images []float32, i int, what string, guess int32) {
	fmt.Fprintf(w, "\n%s %d:\n", what, guess)
	for row := range 8 {
		line := ""
		for col := range 8 {
			line += []string{"  ", "░░", "▒▒", "▓▓", "██"}[int(images[i*pixels+row*8+col])/4]
		}
		fmt.Fprintln(w, line)
	}
}

// readFloats reads n numbers and returns the rest of the input.
func readFloats(data []byte, n int) (x []float32, rest []byte) {
	x = make([]float32, n)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return x, data[4*n:]
}
