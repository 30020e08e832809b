package batch_test

import (
	"context"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
)

func BenchmarkRecord(b *testing.B) {
	dev := openCPU(b)
	rec := batch.New(dev)
	b.ReportAllocs()
	x := rec.Upload(make([]float32, 16))
	v := x
	for i := 0; b.Loop(); i++ {
		if i%100 == 99 {
			rec.Reset()
			x = rec.Upload(nil)
			v = x
		}
		v = rec.Relu(v)
	}
}

func BenchmarkRecordMatMul(b *testing.B) {
	dev := openCPU(b)
	rec := batch.New(dev)
	b.ReportAllocs()
	w := make([]float32, 16)
	x := rec.Upload(w, 4, 4)
	v := x
	for i := 0; b.Loop(); i++ {
		if i%100 == 99 {
			rec.Reset()
			x = rec.Upload(w, 4, 4)
			v = x
		}
		v = rec.MatMul(v, x, batch.None)
	}
}

// BenchmarkReplay runs plans of 20 tiny operations that do not fuse.
func BenchmarkReplay(b *testing.B) {
	ctx := context.Background()
	dev, err := device.Open(ctx, device.Require(device.CPU), device.WithThreads(1))
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	in, out := make([]float32, 16), make([]float32, 16)
	for name, next := range map[string]func(rec *batch.Batch, v, x batch.Value, i int) batch.Value{
		"matmul":  func(rec *batch.Batch, v, x batch.Value, i int) batch.Value { return rec.MatMul(v, x, batch.None) },
		"softmax": func(rec *batch.Batch, v, x batch.Value, i int) batch.Value { return rec.Softmax(v) },
		"mixed": func(rec *batch.Batch, v, x batch.Value, i int) batch.Value {
			switch i % 4 {
			case 0:
				return rec.Transpose(v)
			case 1:
				return rec.MatMul(v, x, batch.None)
			case 2:
				return rec.RMSNorm(v, batch.None)
			}
			return rec.Softmax(v)
		},
	} {
		b.Run(name, func(b *testing.B) {
			rec := batch.New(dev)
			x := rec.Upload(in, 4, 4)
			v := x
			for i := range 20 {
				v = next(rec, v, x, i)
			}
			p, err := rec.Compile(ctx)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := p.Run(ctx, batch.BindInput(x, in), batch.BindOutput(v, out)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompile100(b *testing.B) {
	ctx := context.Background()
	dev := openCPU(b)
	in := make([]float32, 16)
	i := 0
	for b.Loop() {
		rec := batch.New(dev)
		x := rec.Upload(in, 4, 4)
		v := x
		for j := range 99 {
			switch j % 3 {
			case 0:
				v = rec.Scale(v, float32(i)) // a new graph each time
			case 1:
				v = rec.Softmax(v)
			case 2:
				v = rec.MatMul(v, x, batch.None)
			}
			i++
		}
		if _, err := rec.Compile(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAppendStep appends keys and values to the caches of 32 layers, at an index that each run
// binds. One plan serves all indices, and runs do not allocate.
func BenchmarkAppendStep(b *testing.B) {
	ctx := context.Background()
	dev, err := device.Open(ctx, device.Require(device.CPU), device.WithThreads(1))
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	const layers, heads, tokens, dim = 32, 4, 64, 32 // the caches have 2 MB together, so that the time of the host dominates
	rec := batch.New(dev)
	row := make([]float32, heads*dim)
	x, at := rec.Upload(row, heads, 1, dim), batch.Upload(rec, []int32{0})
	for range 2 * layers {
		cache, err := device.Upload(ctx, dev, make([]float32, heads*tokens*dim), heads, tokens, dim)
		if err != nil {
			b.Fatal(err)
		}
		defer cache.Close()
		rec.StoreAt(cache, 1, at, x)
	}
	p, err := rec.Compile(ctx)
	if err != nil {
		b.Fatal(err)
	}
	place := []int32{0}
	bind := []batch.Binding{batch.BindInput(x, row), batch.BindInput(at, place)}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		place[0] = int32(i % tokens)
		if err := p.Run(ctx, bind...); err != nil {
			b.Fatal(err)
		}
	}
}
