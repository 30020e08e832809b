package batch_test

import (
	"fmt"
	"log"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

func ExampleBatch_MaxPool() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	x := b.Upload([]float32{
		1, 2, 3, 4,
		8, 7, 6, 5,
		1, 1, 2, 2,
		0, 9, 0, 0,
	}, 1, 1, 4, 4)
	y, at := b.MaxPoolIndices(x, []int{2})
	if err := b.Execute(ctx, y, at); err != nil {
		log.Fatal(err)
	}
	values, _ := batch.Read[float32](ctx, b, y)
	places, _ := batch.Read[int32](ctx, b, at)
	fmt.Println(values, places)
	// Output: [8 6 9 2] [4 6 13 10]
}

// A convolution whose result has as many elements as its operand.
func ExampleBatch_Conv() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	signal := b.Upload([]float32{1, 2, 4, 8}, 1, 1, 4)
	differences := b.Upload([]float32{-1, 1}, 1, 1, 2)
	fmt.Println(values(b, b.Conv(signal, differences, batch.None, op.ConvOpts{Same: op.SameLower})))
	// Output: [1 1 2 4]
}

// Upsampling to twice the extents.
func ExampleBatch_ConvTranspose() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	x := b.Upload([]float32{1, 2, 3}, 1, 1, 3)
	w := b.Upload([]float32{1, 10}, 1, 1, 2)
	fmt.Println(values(b, b.ConvTranspose(x, w, batch.None, op.ConvOpts{Stride: []int{2}})))
	// Output: [1 10 2 20 3 30]
}

func ExampleBatch_Resize() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	x := b.Upload([]float32{0, 4, 8}, 1, 3)
	linear := b.Resize(x, []int{6})
	nearest := b.Resize(x, []int{6}, op.ResizeOpts{Mode: op.Nearest})
	corners := b.Resize(x, []int{5}, op.ResizeOpts{Coordinates: op.AlignCorners})
	fmt.Println(values(b, b.Concat(1, linear, nearest, corners)))
	// Output: [0 1 3 5 7 8 0 0 4 4 8 8 0 2 4 6 8]
}

// The middle of an image, turned by a quarter.
func ExampleBatch_GridSample() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	x := b.Upload([]float32{1, 2, 3, 4}, 1, 1, 2, 2)
	grid := b.Upload([]float32{0.5, -0.5, 0.5, 0.5, -0.5, -0.5, -0.5, 0.5}, 1, 2, 2, 2)
	fmt.Println(values(b, b.GridSample(x, grid)))
	// Output: [2 4 1 3]
}

// The second label is padding and does not count.
func ExampleBatch_CrossEntropy() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	logits := b.Upload([]float32{0, 0, 9, 9, 1, 1}, 3, 2)
	labels := batch.Upload(b, []int32{1, -100, 0})
	loss := values(b, b.CrossEntropy(logits, labels, batch.None, op.LossOpts{Ignore: []int{-100}}))
	fmt.Printf("%.4f\n", loss[0]) // log 2
	// Output: 0.6931
}

// A recurrent network of two steps that adds up its inputs and saturates.
func ExampleBatch_RNN() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	x := b.Upload([]float32{0.5, 0.25}, 2, 1, 1)
	one := b.Const(1, 1, 1, 1)
	y, _ := b.RNN(x, one, one, batch.None, batch.None)
	fmt.Printf("%.3f\n", values(b, y)) // tanh(0.5), tanh(0.25 + tanh(0.5))
	// Output: [0.462 0.612]
}

// Weights of eight bits with a scale for each row.
func ExampleBatch_Quantize() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	w := b.Upload([]float32{0.5, -1, 2, 1}, 2, 2)
	o := op.QuantizeOpts{Signed: true}
	scale := b.Scale(b.NormLinf(w, op.Axes(1)), 1.0/127)
	q := b.Quantize(w, scale, batch.None, o)
	if err := b.Execute(ctx, q); err != nil {
		log.Fatal(err)
	}
	fmt.Println(batch.Read[int32](ctx, b, q))
	// Output: [64 -127 127 64] <nil>
}

func ExampleBatch_Normalize() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	x := b.Upload([]float32{3, 4, 0, 0}, 2, 2)
	fmt.Println(values(b, b.Normalize(x)))
	// Output: [0.6 0.8 0 0]
}
