package device_test

import (
	"context"
	"fmt"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/kernel"
)

// This example builds a kernel, checks it for races and invalid accesses, and runs it.
func ExampleDevice_Kernel() {
	ctx := context.Background()
	dev, err := device.Open(ctx)
	if err != nil {
		panic(err)
	}
	defer dev.Close()

	type params struct {
		N     uint32
		Scale float32
	}
	saxpy := kernel.New("saxpy", func(b *kernel.Builder, p *params) {
		b.LocalSize(64, 1, 1)
		x := kernel.Input[kernel.F32](b, "x")
		y := kernel.InOut[kernel.F32](b, "y")
		i := b.Index()
		b.If(i.Lt(b.U32(&p.N)), func() {
			y.Set(i, x.At(i).Fma(b.F32(&p.Scale), y.At(i)))
		})
	})

	k, err := dev.Kernel(ctx, saxpy)
	if err != nil {
		panic(err)
	}
	x, y := []float32{1, 2, 3}, []float32{10, 20, 30}
	p := params{N: uint32(len(x)), Scale: 2}
	findings, err := k.Check(ctx, k.GridFor(len(x)), p, device.In(x), device.InOut([]float32{0, 0, 0}))
	if err != nil {
		panic(err)
	}
	if err := k.Run(ctx, k.GridFor(len(x)), p, device.In(x), device.InOut(y)); err != nil {
		panic(err)
	}
	fmt.Println(len(findings), y)
	// Output: 0 [12 24 36]
}
