package batch_test

import (
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

// BenchmarkNetworks runs operations of neural networks on images.
func BenchmarkNetworks(b *testing.B) {
	for _, c := range []struct {
		name  string
		shape []int
		do    func(b *batch.Batch, x batch.Value) batch.Value
	}{
		{"maxpool2", []int{1, 64, 112, 112}, func(b *batch.Batch, x batch.Value) batch.Value { return b.MaxPool(x, []int{2}) }},
		{"maxpool3", []int{1, 64, 112, 112}, func(b *batch.Batch, x batch.Value) batch.Value {
			return b.MaxPool(x, []int{3}, op.PoolOpts{Stride: []int{2}, Pad: []int{1}})
		}},
		{"avgpool2", []int{1, 64, 112, 112}, func(b *batch.Batch, x batch.Value) batch.Value { return b.AvgPool(x, []int{2}) }},
		{"resize", []int{1, 3, 480, 640}, func(b *batch.Batch, x batch.Value) batch.Value { return b.Resize(x, []int{960, 1280}) }},
		{"nearest", []int{1, 3, 480, 640}, func(b *batch.Batch, x batch.Value) batch.Value {
			return b.Resize(x, []int{960, 1280}, op.ResizeOpts{Mode: op.Nearest})
		}},
		{"resize odd", []int{1, 3, 480, 640}, func(b *batch.Batch, x batch.Value) batch.Value { return b.Resize(x, []int{224, 224}) }},
		{"depthwise", []int{1, 64, 112, 112}, func(b *batch.Batch, x batch.Value) batch.Value {
			return b.Conv(x, b.Const(0.1, 64, 1, 3, 3), batch.None, op.ConvOpts{Groups: 64, Pad: []int{1}})
		}},
		{"grouped", []int{1, 64, 112, 112}, func(b *batch.Batch, x batch.Value) batch.Value {
			return b.Conv(x, b.Const(0.1, 64, 8, 3, 3), batch.None, op.ConvOpts{Groups: 8, Pad: []int{1}})
		}},
		{"transposed2", []int{1, 64, 56, 56}, func(b *batch.Batch, x batch.Value) batch.Value {
			return b.ConvTranspose(x, b.Const(0.1, 64, 32, 2, 2), batch.None, op.ConvOpts{Stride: []int{2}})
		}},
		{"transposed4", []int{1, 64, 56, 56}, func(b *batch.Batch, x batch.Value) batch.Value {
			return b.ConvTranspose(x, b.Const(0.1, 64, 32, 4, 4), batch.None, op.ConvOpts{Stride: []int{2}, Pad: []int{1}})
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			dev := openCPU(b)
			r := batch.New(dev)
			x := make([]float32, product(c.shape))
			for i := range x {
				x[i] = float32(i%17) - 8
			}
			y := c.do(r, r.Upload(x, c.shape...))
			plan, err := r.Compile(b.Context(), y)
			if err != nil {
				b.Fatal(err)
			}
			defer plan.Close()
			out := make([]float32, product(y.Shape()))
			if testing.Verbose() {
				b.Log(plan)
			}
			for b.Loop() {
				if err := plan.Run(b.Context(), batch.BindOutput(y, out)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func product(s []int) int {
	n := 1
	for _, d := range s {
		n *= d
	}
	return n
}

// BenchmarkNetworksLoop measures loops over elements on one core, for comparison.
func BenchmarkNetworksLoop(b *testing.B) {
	x := make([]float32, 3*480*640)
	for i := range x {
		x[i] = float32(i%17) - 8
	}
	y := make([]float32, 4*len(x))
	b.Run("maxpool2", func(b *testing.B) {
		for b.Loop() {
			for c := range 64 {
				image, out := x[c*112*112:][:112*112], y[c*56*56:][:56*56]
				for i := range 56 {
					for j := range 56 {
						p := image[i*224+2*j:]
						out[i*56+j] = max(max(p[0], p[1]), max(p[112], p[113]))
					}
				}
			}
		}
	})
	b.Run("resize", func(b *testing.B) {
		for b.Loop() {
			for c := range 3 {
				for i := range 960 {
					h := max(0, float32(i)/2-0.25)
					h0, fh := int(h), h-float32(int(h))
					h1 := min(h0+1, 479)
					r0, r1 := x[(c*480+h0)*640:][:640], x[(c*480+h1)*640:][:640]
					for j := range 1280 {
						w := max(0, float32(j)/2-0.25)
						w0, fw := int(w), w-float32(int(w))
						w1 := min(w0+1, 639)
						y[(c*960+i)*1280+j] = (1-fh)*((1-fw)*r0[w0]+fw*r0[w1]) + fh*((1-fw)*r1[w0]+fw*r1[w1])
					}
				}
			}
		}
	})
}
