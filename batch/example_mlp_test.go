package batch_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// This example trains a network of two layers on the XOR function. The weights stay on the device. One plan holds
// a step of gradient descent: the forward pass, the gradients and the stores of the new weights.
func Example_training() {
	ctx := context.Background()
	dev, err := device.Open(ctx, device.Require(device.CPU))
	if err != nil {
		panic(err)
	}
	defer dev.Close()

	const in, hidden, classes = 2, 16, 2
	r := rand.New(rand.NewPCG(1, 2))
	weights := func(rows, cols int) *device.Buffer {
		w := make([]float32, rows*cols)
		for i := range w {
			w[i] = float32(r.NormFloat64()) * 0.5
		}
		buf, err := device.Upload(ctx, dev, w, rows, cols)
		if err != nil {
			panic(err)
		}
		return buf
	}
	w1, b1, w2 := weights(in, hidden), weights(1, hidden), weights(hidden, classes)

	x := []float32{0, 0, 0, 1, 1, 0, 1, 1}
	labels := []int32{0, 1, 1, 0}

	b := batch.New(dev)
	xs, ids := b.Upload(x, 4, in), batch.Upload(b, labels)
	v1, c1, v2 := b.Use(w1), b.Use(b1), b.Use(w2)
	h := b.Tanh(b.Add(b.MatMul(xs, v1, batch.None), c1))
	logits := b.MatMul(h, v2, batch.None)
	loss := b.CrossEntropy(logits, ids, batch.None)

	// The gradient of the mean cross entropy is (softmax(logits) - onehot) / n.
	g := b.Scale(b.Sub(b.Softmax(logits, op.Axes(-1)), b.OneHot(ids, classes, -1)), 1.0/4)
	dw2 := b.MatMul(h, g, batch.None, op.MatMulOpts{TransA: true})
	dh := b.MatMul(g, v2, batch.None, op.MatMulOpts{TransB: true})
	dz := b.Mul(dh, b.AddScalar(b.Neg(b.Square(h)), 1)) // the derivative of tanh is 1 - tanh²
	dw1 := b.MatMul(xs, dz, batch.None, op.MatMulOpts{TransA: true})
	db1 := b.Sum(dz, op.Axes(0).KeepDims())
	const rate = -0.5
	b.Store(w1, 0, b.Axpy(dw1, v1, rate)) // v1 - 0.5·dw1
	b.Store(b1, 0, b.Axpy(db1, c1, rate))
	b.Store(w2, 0, b.Axpy(dw2, v2, rate))

	step, err := b.Compile(ctx, loss)
	if err != nil {
		panic(err)
	}
	defer step.Close()
	var first, last [1]float32
	if err := step.Run(ctx, batch.BindOutput(loss, first[:])); err != nil {
		panic(err)
	}
	for range 300 {
		if err := step.Run(ctx, batch.BindOutput(loss, last[:])); err != nil {
			panic(err)
		}
	}
	fmt.Println("the loss fell:", last[0] < first[0]/10)
	// Output: the loss fell: true
}

// This example builds one plan of a decoding step and runs it for two positions. The position is an operand of one
// element, bound for each run, so that the plan need not be made again.
func ExampleBindInput() {
	ctx := context.Background()
	dev, err := device.Open(ctx)
	if err != nil {
		panic(err)
	}
	defer dev.Close()
	cache, err := device.Upload(ctx, dev, make([]float32, 8), 4, 2) // 4 positions of 2 elements
	if err != nil {
		panic(err)
	}

	b := batch.New(dev)
	x := b.Upload(make([]float32, 2), 1, 2)
	at := batch.Upload(b, []int32{0})
	b.StoreAt(cache, 0, at, b.Scale(x, 10))
	sum := b.Sum(b.Use(cache), op.Axes(0))
	plan, err := b.Compile(ctx, sum)
	if err != nil {
		panic(err)
	}
	defer plan.Close()

	y := make([]float32, 2)
	for position, row := range [][]float32{{1, 2}, {3, 4}} {
		err := plan.Run(ctx, batch.BindInput(x, row), batch.BindInput(at, []int32{int32(position)}), batch.BindOutput(sum, y))
		if err != nil {
			panic(err)
		}
		fmt.Println(y)
	}
	// Output:
	// [10 20]
	// [40 60]
}
