package device_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

var ctx = context.Background()

// open returns a device for the other examples.
func open() *device.Device {
	dev, err := device.Open(ctx)
	if err != nil {
		log.Fatal(err)
	}
	return dev
}

func Example() {
	dev, err := device.Open(ctx) // the best device of the machine
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()

	x := []float32{1, 2, -3, 4}
	y := make([]float32, len(x))
	if err := dev.Relu(ctx, y, x); err != nil {
		log.Fatal(err)
	}
	fmt.Println(y)
	// Output: [1 2 0 4]
}

func ExampleOpen() {
	// Open the CPU with at most two threads, and no other device.
	dev, err := device.Open(ctx, device.Require(device.CPU), device.WithThreads(2))
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	fmt.Println(dev, dev.Pinned(), dev.Info().Threads <= 2)
	// Output: cpu:0 true true
}

func ExampleParseName() {
	kind, index, err := device.ParseName("cuda:1")
	fmt.Println(kind, index, err)
	_, _, err = device.ParseName("abacus")
	fmt.Println(errors.Is(err, device.ErrNoDevice))
	// Output:
	// cuda 1 <nil>
	// true
}

func ExampleDevice_Add() {
	dev := open()
	defer dev.Close()
	x, y := []float32{1, 2, 3}, []float32{10, 20, 30}
	if err := dev.Add(ctx, x, x, y); err != nil { // the result may overwrite an operand
		log.Fatal(err)
	}
	fmt.Println(x)
	// Output: [11 22 33]
}

func ExampleDevice_Clip() {
	dev := open()
	defer dev.Close()
	x := []float32{-2, -1, 0, 1, 2}
	if err := dev.Clip(ctx, x, x, -1, 1); err != nil {
		log.Fatal(err)
	}
	fmt.Println(x)
	// Output: [-1 -1 0 1 1]
}

func ExampleDevice_ReluAsync() {
	dev := open()
	defer dev.Close()
	x := []float32{1, -2}
	y := make([]float32, 2)
	p := dev.ReluAsync(ctx, y, x) // the call uses both slices until it is done
	if err := p.Wait(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(y)
	// Output: [1 0]
}

func ExampleDevice_Map() {
	softsign := op.Unary("softsign", func(x op.Expr) op.Expr {
		return x.Div(x.Abs().Add(op.Const(1)))
	})
	dev := open()
	defer dev.Close()
	y := make([]float32, 3)
	if err := dev.Map(ctx, y, softsign, []float32{-1, 0, 3}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(y)
	// Output: [-0.5 0 0.75]
}

func ExampleDevice_Dot() {
	dev := open()
	defer dev.Close()
	s, err := dev.Dot(ctx, []float32{1, 2, 3}, []float32{4, 5, 6})
	fmt.Println(s, err)
	// Output: 32 <nil>
}

func ExampleDevice_SumAsync() {
	dev := open()
	defer dev.Close()
	f := dev.SumAsync(ctx, []float32{1, 2, 3})
	s, err := f.Value(ctx)
	fmt.Println(s, err)
	// Output: 6 <nil>
}

func ExampleReduce() {
	dev := open()
	defer dev.Close()
	means := make([]float32, 2)
	if err := device.Reduce(ctx, dev, means, op.Mean, op.Attrs{}, 2, 3, []float32{1, 2, 3, 10, 20, 30}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(means)
	// Output: [2 20]
}

func ExampleDevice_ArgMax() {
	dev := open()
	defer dev.Close()
	i, err := dev.ArgMax(ctx, []float32{3, 1, 4, 1, 5, 9, 2, 6})
	fmt.Println(i, err)
	// Output: 5 <nil>
}

func ExampleDevice_Softmax() {
	dev := open()
	defer dev.Close()
	p := []float32{1, 2, 3, 7, 7, 7}
	if err := dev.Softmax(ctx, p, p, 2, 3); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.3f\n", p)
	// Output: [0.090 0.245 0.665 0.333 0.333 0.333]
}

func ExampleDevice_LayerNorm() {
	dev := open()
	defer dev.Close()
	x := []float32{1, 3, 10, 30}
	if err := dev.LayerNorm(ctx, x, x, nil, nil, 2, 2); err != nil { // no gamma, no beta
		log.Fatal(err)
	}
	fmt.Printf("%.3f\n", x)
	// Output: [-1.000 1.000 -1.000 1.000]
}

func ExampleDevice_MatMul() {
	dev := open()
	defer dev.Close()
	a := []float32{
		1, 2, 3,
		4, 5, 6,
	}
	b := []float32{
		1, 0,
		0, 1,
		1, -1,
	}
	c := make([]float32, 2*2)
	if err := dev.MatMul(ctx, c, a, b, nil, 2, 3, 2); err != nil {
		log.Fatal(err)
	}
	fmt.Println(c)
	// Output: [4 -1 10 -1]
}

func ExampleDevice_MatMul_bias() {
	dev := open()
	defer dev.Close()
	// A linear layer with its weights as [out, in], and its activation.
	x, weights, bias := []float32{1, 2}, []float32{1, 1, -1, -1}, []float32{0.5, 0.5}
	y := make([]float32, 2)
	err := dev.MatMul(ctx, y, x, weights, bias, 1, 2, 2, op.MatMulOpts{TransB: true, Act: op.Relu})
	fmt.Println(y, err)
	// Output: [3.5 0] <nil>
}

func ExampleDevice_Conv2D() {
	dev := open()
	defer dev.Close()
	image := []float32{
		0, 0, 0, 0,
		0, 9, 9, 0,
		0, 9, 9, 0,
		0, 0, 0, 0,
	}
	window := []float32{-1, 1} // the difference of the right and the left neighbour
	edges := make([]float32, 4*3)
	if err := dev.Conv2D(ctx, edges, image, window, nil, [4]int{1, 1, 4, 4}, [4]int{1, 1, 1, 2}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(edges[3:6])
	// Output: [9 0 -9]
}

func ExampleDevice_Gather() {
	dev := open()
	defer dev.Close()
	table := []float32{0, 0, 1, 10, 2, 20}
	rows := make([]float32, 2*2)
	if err := dev.Gather(ctx, rows, table, []int32{2, 1}, 3, 2); err != nil {
		log.Fatal(err)
	}
	fmt.Println(rows)
	// Output: [2 20 1 10]
}

func ExampleDevice_TopK() {
	dev := open()
	defer dev.Close()
	values, columns := make([]float32, 2), make([]int32, 2)
	if err := dev.TopK(ctx, values, columns, []float32{3, 1, 4, 1, 5}, 1, 5, 2); err != nil {
		log.Fatal(err)
	}
	fmt.Println(values, columns)
	// Output: [5 4] [4 2]
}

func ExampleDevice_Attention() {
	dev := open()
	defer dev.Close()
	// One head, one query, and two keys with equal scores.
	q, k, v := []float32{1, 0}, []float32{0, 5, 0, -5}, []float32{2, 0, 4, 8}
	y := make([]float32, 2)
	err := dev.Attention(ctx, y, q, k, v, device.AttentionSize{Heads: 1, Tq: 1, Tk: 2, Dim: 2})
	fmt.Println(y, err)
	// Output: [3 4] <nil>
}

func ExampleUpload() {
	dev := open()
	defer dev.Close()
	buf, err := device.Upload(ctx, dev, []int32{1, 2, 3, 4}, 2, 2)
	if err != nil {
		log.Fatal(err)
	}
	defer buf.Close()
	back := make([]int32, 4)
	if err := device.Read(ctx, back, buf); err != nil {
		log.Fatal(err)
	}
	fmt.Println(buf.Type(), buf.Shape(), back)
	// Output: i32 [2 2] [1 2 3 4]
}

func ExampleAlloc() {
	x := device.Alloc(1 << 20) // aligned memory, on huge pages if the system has them
	fmt.Println(len(x), x[0], device.Alloc(-1) == nil)
	// Output: 1048576 0 true
}

func ExampleOpError() {
	dev, err := device.Open(ctx, device.Require(device.CPU))
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	err = dev.Relu(ctx, make([]float32, 3), make([]float32, 4))
	var oe *device.OpError
	fmt.Println(errors.Is(err, device.ErrShape), errors.As(err, &oe))
	fmt.Println(err)
	// Output:
	// true true
	// relu [4] on cpu:0: the result has 3 elements; all slices must have the same length: shape mismatch
}
