//go:build (linux || windows) && !nocuda

package devicetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// onDevice measures a plan over arrays that stay on the device: inputs of the
// shapes, filled with random numbers, and one result. bytes and flops are those of
// one run.
func onDevice(b *testing.B, dev *device.Device, shapes [][]int, out []int, bytes, flops float64, build func(r *batch.Batch, in []batch.Value) batch.Value) {
	b.Helper()
	ctx := context.Background()
	size := func(s []int) int {
		n := 1
		for _, d := range s {
			n *= d
		}
		return n
	}
	r := batch.New(dev)
	var in []batch.Value
	rnd := rand.New(rand.NewPCG(1, 2))
	block := make([]float32, 1<<16)
	for _, s := range shapes {
		buf, err := dev.NewBuffer(ctx, op.F32, s...)
		if err != nil {
			b.Fatal(err)
		}
		defer buf.Close()
		x := make([]float32, size(s))
		for i := range block {
			block[i] = float32(rnd.NormFloat64())
		}
		for i := 0; i < len(x); i += len(block) {
			copy(x[i:], block)
		}
		if err := device.Write(ctx, buf, x); err != nil {
			b.Fatal(err)
		}
		in = append(in, r.Use(buf))
	}
	to, err := dev.NewBuffer(ctx, op.F32, out...)
	if err != nil {
		b.Fatal(err)
	}
	defer to.Close()
	r.Store(to, 0, build(r, in))
	// The time that the device needs, without the way there: the best of many.
	p, err := r.Profile(ctx)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() { // it has been measured
	}
	seconds := p.Total.Min.Seconds()
	b.ReportMetric(seconds*1e6, "device-µs")
	if bytes > 0 {
		b.ReportMetric(bytes/seconds/1e9, "GB/s")
	}
	if flops > 0 {
		b.ReportMetric(flops/seconds/1e9, "GFLOP/s")
	}
}

// BenchmarkCUDA measures a GPU: first what is resident, then round trips.
func BenchmarkCUDA(b *testing.B) {
	dev, err := device.Open(context.Background(), device.Require(device.CUDA))
	if err != nil {
		b.Skip(err)
	}
	defer dev.Close()
	const n = 64 << 20
	type value = batch.Value
	type rec = batch.Batch
	for _, c := range []struct {
		name   string
		shapes [][]int
		out    []int
		bytes  float64
		flops  float64
		build  func(r *rec, in []value) value
	}{
		{"copy/64M", [][]int{{n}}, []int{n}, 8 * n, 0, func(r *rec, in []value) value { return in[0] }},
		{"relu/64M", [][]int{{n}}, []int{n}, 8 * n, 0, func(r *rec, in []value) value { return r.Relu(in[0]) }},
		{"add/64M", [][]int{{n}, {n}}, []int{n}, 12 * n, 0, func(r *rec, in []value) value { return r.Add(in[0], in[1]) }},
		{"exp/64M", [][]int{{n}}, []int{n}, 8 * n, 0, func(r *rec, in []value) value { return r.Exp(in[0]) }},
		{"gelu/64M", [][]int{{n}}, []int{n}, 8 * n, 0, func(r *rec, in []value) value { return r.Gelu(in[0]) }},
		{"relu/1M", [][]int{{1 << 20}}, []int{1 << 20}, 8 << 20, 0, func(r *rec, in []value) value { return r.Relu(in[0]) }},
		{"sum/64M", [][]int{{n}}, []int{}, 4 * n, 0, func(r *rec, in []value) value { return r.Sum(in[0]) }},
		{"sum/1M", [][]int{{1 << 20}}, []int{}, 4 << 20, 0, func(r *rec, in []value) value { return r.Sum(in[0]) }},
		{"softmax/65536x1000", [][]int{{65536, 1000}}, []int{65536, 1000}, 8 * 65536 * 1000, 0, func(r *rec, in []value) value { return r.Softmax(in[0]) }},
		{"softmax/16384x4096", [][]int{{16384, 4096}}, []int{16384, 4096}, 8 * n, 0, func(r *rec, in []value) value { return r.Softmax(in[0]) }},
		{"matmul/1024", [][]int{{1024, 1024}, {1024, 1024}}, []int{1024, 1024}, 0, 2 * 1024 * 1024 * 1024, func(r *rec, in []value) value { return r.MatMul(in[0], in[1]) }},
		{"matmul/2048", [][]int{{2048, 2048}, {2048, 2048}}, []int{2048, 2048}, 0, 2 * 2048 * 2048 * 2048, func(r *rec, in []value) value { return r.MatMul(in[0], in[1]) }},
		{"matmul/4096", [][]int{{4096, 4096}, {4096, 4096}}, []int{4096, 4096}, 0, 2 * 4096 * 4096 * 4096, func(r *rec, in []value) value { return r.MatMul(in[0], in[1]) }},
		{"matvec/16384", [][]int{{16384, 4096}, {4096}}, []int{16384}, 4 * 16384 * 4096, 0, func(r *rec, in []value) value { return r.MatVec(in[0], in[1]) }},
	} {
		b.Run("resident/"+c.name, func(b *testing.B) { onDevice(b, dev, c.shapes, c.out, c.bytes, c.flops, c.build) })
	}
	ctx := context.Background()
	for _, n := range []int{4, 1 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("oneshot/relu/%d", n), func(b *testing.B) {
			x, dst := device.Alloc(n), device.Alloc(n)
			for b.Loop() {
				if err := dev.Relu(ctx, dst, x); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	// Twenty operations that do not fuse.
	for _, kept := range []bool{false, true} {
		b.Run(fmt.Sprintf("twenty/kept=%v", kept), func(b *testing.B) {
			x, y := device.Alloc(256*4), device.Alloc(256*4)
			r := batch.New(dev)
			record := func() {
				r.Reset()
				v := r.Upload(x, 4, 256)
				for range 20 {
					v = r.Softmax(v)
				}
				r.Get(v, y)
			}
			record()
			plan, err := r.Compile(ctx)
			if err != nil {
				b.Fatal(err)
			}
			defer plan.Close()
			for b.Loop() {
				if kept {
					err = plan.Run(ctx)
				} else {
					record()
					err = r.Execute(ctx)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
