package batch_test

import (
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// BenchmarkEinsum runs the plans of einsums that are products of views.
func BenchmarkEinsum(b *testing.B) {
	dev, err := device.Open(b.Context(), device.Require(device.CPU))
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	for _, c := range []struct {
		name, spec string
		shapes     []op.Shape
	}{
		{"attention", "bqhd,bkhd->bhqk", []op.Shape{{2, 256, 8, 64}, {2, 256, 8, 64}}},
		{"values", "bhqk,bkhd->bqhd", []op.Shape{{2, 8, 256, 256}, {2, 256, 8, 64}}},
		{"bilinear", "bi,ijk,bk->bj", []op.Shape{{128, 64}, {64, 64, 64}, {128, 64}}},
	} {
		r := batch.New(dev)
		var in []batch.Value
		for _, s := range c.shapes {
			n, _ := s.Size()
			x := device.Alloc(n)
			for i := range x {
				x[i] = rand.Float32() - 0.5
			}
			in = append(in, r.Upload(x, s...))
		}
		y := r.Einsum(c.spec, in...)
		plan, err := r.Compile(b.Context(), y)
		if err != nil {
			b.Fatal(err)
		}
		n, _ := y.Shape().Size()
		out := device.Alloc(n)
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if err := plan.Run(b.Context(), batch.BindOutput(y, out)); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Log(plan)
		plan.Close()
	}
}
