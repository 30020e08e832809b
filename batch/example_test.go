package batch_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

var ctx = context.Background()

// open returns a device for the examples.
func open() *device.Device {
	dev, err := device.Open(ctx)
	if err != nil {
		log.Fatal(err)
	}
	return dev
}

// values runs the batch and returns v.
func values(b *batch.Batch, v batch.Value) []float32 {
	if err := b.Execute(ctx, v); err != nil {
		log.Fatal(err)
	}
	out, err := batch.Read[float32](ctx, b, v)
	if err != nil {
		log.Fatal(err)
	}
	return out
}

func Example() {
	dev := open()
	defer dev.Close()

	b := batch.New(dev)
	x := b.Upload([]float32{1, 2, -3, 4})
	y := b.Scale(b.Relu(x), 2)
	if err := b.Execute(ctx); err != nil { // one round trip
		log.Fatal(err)
	}
	out, err := batch.Read[float32](ctx, b, y)
	fmt.Println(out, err)
	// Output: [2 4 0 8] <nil>
}

func ExampleBatch_ExecuteAsync() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	y := b.Neg(b.Upload([]float32{1, 2}))
	p := b.ExecuteAsync(ctx)
	// Something else can happen here.
	if err := p.Wait(ctx); err != nil {
		log.Fatal(err)
	}
	out, err := batch.Read[float32](ctx, b, y)
	fmt.Println(out, err)
	// Output: [-1 -2] <nil>
}

func ExampleBatch_Keep() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	squares := b.Square(b.Upload([]float32{3, 4}))
	sum := b.Sum(squares)
	b.Keep(squares) // or only sum, which nothing consumes, would come back
	if err := b.Execute(ctx); err != nil {
		log.Fatal(err)
	}
	s, _ := batch.Read[float32](ctx, b, sum)
	q, _ := batch.Read[float32](ctx, b, squares)
	fmt.Println(s, q)
	// Output: [25] [9 16]
}

func ExampleReadInto() {
	dev := open()
	defer dev.Close()
	dst := make([]float32, 2)
	b := batch.New(dev)
	batch.ReadInto(b, b.Sqrt(b.Upload([]float32{4, 9})), dst) // straight into dst
	err := b.Execute(ctx)
	fmt.Println(dst, err)
	// Output: [2 3] <nil>
}

func ExampleBatch_Store() {
	dev := open()
	defer dev.Close()
	sum, err := device.Upload(ctx, dev, []float32{0, 0})
	if err != nil {
		log.Fatal(err)
	}
	b := batch.New(dev)
	for _, x := range [][]float32{{1, 10}, {2, 20}} {
		b.Store(sum, 0, b.Add(b.Use(sum), b.Upload(x)))
	}
	if err := b.Execute(ctx); err != nil {
		log.Fatal(err)
	}
	out := make([]float32, 2)
	err = device.Read(ctx, out, sum)
	fmt.Println(out, err)
	// Output: [3 30] <nil>
}

func ExampleBatch_Add() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	m := b.Upload([]float32{1, 2, 3, 4}, 2, 2)
	row := b.Upload([]float32{10, 20}) // added to every row
	fmt.Println(values(b, b.Add(m, row)))
	// Output: [11 22 13 24]
}

func ExampleBatch_Where() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	x := b.Upload([]float32{-2, 5, 3})
	zero := b.Const(0)
	fmt.Println(values(b, b.Where(b.Less(x, zero), zero, x)))
	// Output: [0 5 3]
}

func ExampleBatch_Cast() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	v := b.Cast(b.Upload([]float32{1.9, -1.9}), op.I32)
	if err := b.Execute(ctx); err != nil {
		log.Fatal(err)
	}
	out, err := batch.Read[int32](ctx, b, v)
	fmt.Println(out, err)
	// Output: [1 -1] <nil>
}

func ExampleBatch_Map() {
	relative := op.Binary("relative", func(x, y op.Expr) op.Expr {
		return x.Sub(y).Div(x.Abs().Max(y.Abs()))
	})
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	fmt.Println(values(b, b.Map(relative, b.Upload([]float32{4, 1}), b.Upload([]float32{2, 2}))))
	// Output: [0.5 -0.5]
}

func ExampleBatch_MatMul() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	x := b.Upload([]float32{1, 2, 3, 4}, 2, 2)
	w := b.Upload([]float32{1, 0, -1, 0, 1, -1}, 2, 3)
	bias := b.Upload([]float32{0, 0, 4})
	fmt.Println(values(b, b.MatMul(x, w, bias, op.MatMulOpts{Act: op.Relu})))
	// Output: [1 2 1 3 4 0]
}

func ExampleBatch_Softmax() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	fmt.Println(values(b, b.Softmax(b.Upload([]float32{5, 5, 0, 0}, 2, 2))))
	// Output: [0.5 0.5 0.5 0.5]
}

func ExampleBatch_TopK() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	best, at := b.TopK(b.Upload([]float32{3, 1, 4, 1, 5}), 2)
	if err := b.Execute(ctx); err != nil {
		log.Fatal(err)
	}
	v, _ := batch.Read[float32](ctx, b, best)
	i, _ := batch.Read[int32](ctx, b, at)
	fmt.Println(v, i)
	// Output: [5 4] [4 2]
}

func ExampleBatch_Compile() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	x := b.Upload(make([]float32, 3)) // its place is what counts
	y := b.Div(x, b.NormL2(x))
	plan, err := b.Compile(ctx, y)
	if err != nil {
		log.Fatal(err)
	}
	out := make([]float32, 3)
	for _, in := range [][]float32{{3, 0, 4}, {0, 2, 0}} {
		if err := plan.Run(ctx, batch.BindInput(x, in), batch.BindOutput(y, out)); err != nil {
			log.Fatal(err)
		}
		fmt.Println(out)
	}
	// Output:
	// [0.6 0 0.8]
	// [0 1 0]
}

func ExamplePlan_String() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	b.Add(b.Scale(b.Relu(b.Upload(make([]float32, 4))), 0.5), b.Const(1))
	plan, err := b.Compile(ctx)
	if err != nil {
		log.Fatal(err)
	}
	// The three operations are one kernel.
	fmt.Println(strings.Contains(plan.String(), "relu+scale+add"))
	// Output: true
}

func ExampleBatch_Err() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	m := b.Upload(make([]float32, 6), 2, 3)
	b.Relu(b.MatMul(m, m, batch.None)) // Execute returns the mistake, with the line of this call
	err := b.Execute(ctx)
	var oe *device.OpError
	fmt.Println(errors.Is(err, device.ErrShape), errors.As(err, &oe), oe.Op, oe.Shapes)
	// Output: true true matmul [[2 3] [2 3]]
}

func ExampleBatch_Permute() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	x := b.Upload([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	columns := b.Sum(x, op.Axes(0))
	back := b.Slice(b.Permute(x, 1, 0), 0, -1, op.End, -1) // the columns as rows, the last one first
	if err := b.Execute(ctx); err != nil {
		log.Fatal(err)
	}
	sums, _ := batch.Read[float32](ctx, b, columns)
	turned, _ := batch.Read[float32](ctx, b, back)
	fmt.Println(sums, turned)
	// Output: [5 7 9] [3 6 2 5 1 4]
}

func ExampleBatch_StoreAt() {
	dev := open()
	defer dev.Close()
	cache, err := device.Upload(ctx, dev, make([]float32, 8), 4, 2)
	if err != nil {
		log.Fatal(err)
	}
	defer cache.Close()
	b := batch.New(dev)
	row, at := b.Upload([]float32{0, 0}, 1, 2), batch.Upload(b, []int32{0})
	b.StoreAt(cache, 0, at, row)
	all := b.Sum(b.Use(cache), op.Axes(1))
	plan, err := b.Compile(ctx, all)
	if err != nil {
		log.Fatal(err)
	}
	sums := make([]float32, 4)
	for i := range 3 {
		v := float32(i + 1)
		if err := plan.Run(ctx, batch.BindInput(row, []float32{v, v}), batch.BindInput(at, []int32{int32(i)}), batch.BindOutput(all, sums)); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(sums)
	// Output: [2 4 6 0]
}

func ExamplePipeline() {
	dev := open()
	defer dev.Close()
	p, err := batch.NewPipeline[float32, float32](dev, func(b *batch.Batch, x batch.Value) batch.Value {
		return b.Sum(b.Relu(x)) // of one chunk
	}, batch.PipelineOpts{})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	// Any number of small slices; they become few chunks.
	rows := func(yield func([]float32, error) bool) {
		for i := range 1000 {
			if !yield([]float32{float32(i), float32(-i)}, nil) {
				return
			}
		}
	}
	total := 0.0
	for sum, err := range p.Run(ctx, rows) {
		if err != nil {
			log.Fatal(err)
		}
		total += float64(sum[0])
	}
	fmt.Println(total)
	// Output: 499500
}

func ExamplePipeline_Copy() {
	dev := open()
	defer dev.Close()
	p, err := batch.NewPipeline[float32, float32](dev, func(b *batch.Batch, x batch.Value) batch.Value {
		return b.Softmax(x) // of each row
	}, batch.PipelineOpts{Row: []int{2}})
	if err != nil {
		log.Fatal(err)
	}
	defer p.Close()
	var in, out bytes.Buffer // or files
	binary.Write(&in, binary.NativeEndian, []float32{1, 1, 5, 5, 0, 0})
	n, err := p.Copy(ctx, &out, &in)
	result := make([]float32, 6)
	binary.Read(&out, binary.NativeEndian, result)
	fmt.Println(n, err, result)
	// Output: 24 <nil> [0.5 0.5 0.5 0.5 0.5 0.5]
}
