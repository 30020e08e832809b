package kernel_test

import (
	"fmt"

	"github.com/rayo-go/rayo/kernel"
)

// y = a·x + y, one element a lane.
func ExampleNew() {
	type params struct {
		N     uint32
		Scale float32
	}
	saxpy := kernel.New("saxpy", func(b *kernel.Builder, p *params) {
		b.LocalSize(256, 1, 1)
		x := kernel.Input[kernel.F32](b, "x")
		y := kernel.InOut[kernel.F32](b, "y")
		i := b.Index()
		b.If(i.Lt(b.U32(&p.N)), func() {
			y.Set(i, x.At(i).Fma(b.F32(&p.Scale), y.At(i)))
		})
	})
	fmt.Print(saxpy.Listing())
	// Output:
	// kernel saxpy, local size 256 x 1 x 1
	// 	input x []f32
	// 	inout y []f32
	// 	param N u32
	// 	param Scale f32
	// 	v9 = (((group.y * groups.x) + group.x) * 256) + local.x
	// 	if v9 < N {
	// 		y[v9] = fma(x[v9], Scale, y[v9])
	// 	}
}

// The sum of each workgroup's elements, with the steps of the tree unrolled: the
// kernel is specialised by the number of lanes.
func ExampleNewFamily() {
	type params struct{ N uint32 }
	sums := kernel.NewFamily("sums", func(b *kernel.Builder, p *params, lanes int) {
		b.LocalSize(lanes, 1, 1)
		x := kernel.Input[kernel.F32](b, "x")
		y := kernel.Output[kernel.F32](b, "y")
		part := kernel.Shared[kernel.F32](b, "part", lanes)
		lane, i := b.Lane(), b.Index()
		part.Set(lane, kernel.F(0))
		b.If(i.Lt(b.U32(&p.N)), func() { part.Set(lane, x.At(i)) })
		for step := lanes / 2; step > 0; step /= 2 {
			b.Barrier()
			b.If(lane.Lt(kernel.N(step)), func() {
				part.Set(lane, part.At(lane).Add(part.At(lane.Add(kernel.N(step)))))
			})
		}
		b.If(lane.Eq(kernel.U(0)), func() { y.Set(b.Group(), part.At(kernel.U(0))) })
	})
	fmt.Print(sums.Of(4).Listing())
	// Output:
	// kernel sums, local size 4 x 1 x 1
	// 	input x []f32
	// 	output y []f32
	// 	param N u32
	// 	shared part [4]f32
	// 	v6 = (group.y * groups.x) + group.x
	// 	v9 = (v6 * 4) + local.x
	// 	part[local.x] = 0.0
	// 	if v9 < N {
	// 		part[local.x] = x[v9]
	// 	}
	// 	barrier
	// 	if local.x < 2 {
	// 		part[local.x] = part[local.x] + part[local.x + 2]
	// 	}
	// 	barrier
	// 	if local.x < 1 {
	// 		part[local.x] = part[local.x] + part[local.x + 1]
	// 	}
	// 	if local.x == 0 {
	// 		y[v6] = part[0]
	// 	}
}

// A mistake does not panic: the error contains its line.
func ExampleKernel_Err() {
	k := kernel.New("wrong", func(b *kernel.Builder, _ *struct{}) {
		b.LocalSize(64, 1, 1)
		kernel.Shared[kernel.F32](b, "tile", 64).Set(kernel.U(64), kernel.F(1))
	})
	fmt.Println(k.Err())
	// Output:
	// kernel wrong: kernel/example_test.go:87: index 64 of workgroup array tile, which has 64 elements
}

// Grids of one dimension may have more workgroups than a device counts along one
// axis: they are folded.
func ExampleGridFor() {
	fmt.Println(kernel.GridFor(1000, 256).Groups())
	fmt.Println(kernel.GridFor(100_000_000, 256).Groups())
	fmt.Println(kernel.GridFor(0, 256).Err())
	// Output:
	// [4 1 1]
	// [65105 6 1]
	// kernel: invalid grid: 0 lanes in workgroups of 256 lanes: both numbers must be positive
}
