// Command prefixsum computes running sums in three launches: of each block, of the
// sums of the blocks, and the addition of both.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

const lanes = 256 // lanes of a workgroup, and elements of a block

// scan returns the inclusive prefix sums of x over the lanes of the workgroup. In
// round r each lane adds the value of the lane 2**r places before it.
func scan(b *kernel.Builder, x kernel.U32) kernel.U32 {
	sums := kernel.Shared[kernel.U32](b, "sums", lanes)
	lane := b.Lane()
	sum := kernel.NewVar(b, "sum", x)
	for d := uint32(1); d < lanes; d *= 2 { // eight rounds
		sums.Set(lane, sum.Get())
		b.Barrier()
		b.If(lane.Ge(kernel.U(d)), func() { sum.Set(sum.Get().Add(sums.At(lane.Sub(kernel.U(d))))) })
		b.Barrier()
	}
	return sum.Get()
}

// blocks writes the running sums of each block, and of each block its whole sum.
var blocks = kernel.New("blocks", func(b *kernel.Builder, _ *struct{}) {
	b.LocalSize(lanes, 1, 1)
	x := kernel.Input[kernel.U32](b, "x")
	y := kernel.Output[kernel.U32](b, "y")
	total := kernel.Output[kernel.U32](b, "total")
	i := b.Index()
	v := kernel.NewVar(b, "v", kernel.U(0))
	b.If(i.Lt(x.Len()), func() { v.Set(x.At(i)) })
	s := scan(b, v.Get())
	b.If(i.Lt(x.Len()), func() { y.Set(i, s) })
	b.If(b.Lane().Eq(kernel.U(lanes-1)).And(b.Group().Lt(total.Len())), func() { total.Set(b.Group(), s) })
})

// offsets replaces the sums of blocks by running sums of them: one workgroup, a
// tile after the other.
var offsets = kernel.New("offsets", func(b *kernel.Builder, _ *struct{}) {
	b.LocalSize(lanes, 1, 1)
	x := kernel.InOut[kernel.U32](b, "x")
	last := kernel.Shared[kernel.U32](b, "last", 1)
	lane := b.Lane()
	carry := kernel.NewVar(b, "carry", kernel.U(0))
	b.ForStep(kernel.U(0), x.Len(), kernel.U(lanes), func(first kernel.U32) {
		i := first.Add(lane)
		v := kernel.NewVar(b, "v", kernel.U(0))
		b.If(i.Lt(x.Len()), func() { v.Set(x.At(i)) })
		s := scan(b, v.Get()).Add(carry.Get())
		b.If(i.Lt(x.Len()), func() { x.Set(i, s) })
		b.If(lane.Eq(kernel.U(lanes-1)), func() { last.Set(kernel.U(0), s) })
		b.Barrier()
		carry.Set(last.At(kernel.U(0)))
		b.Barrier()
	})
})

// shift adds to each block the sum of those before it.
var shift = kernel.New("shift", func(b *kernel.Builder, _ *struct{}) {
	b.LocalSize(lanes, 1, 1)
	before := kernel.Input[kernel.U32](b, "before")
	y := kernel.InOut[kernel.U32](b, "y")
	i, g := b.Index(), b.Group()
	b.If(g.Gt(kernel.U(0)).And(i.Lt(y.Len())), func() {
		y.Set(i, y.At(i).Add(before.At(g.Sub(kernel.U(1)))))
	})
})

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer) error {
	dev, err := device.Open(ctx)
	if err != nil {
		return err
	}
	defer dev.Close()
	x := make([]uint32, 100_000)
	for i := range x {
		x[i] = uint32(i % 7)
	}
	y, err := sums(ctx, dev, x)
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "of", x[:12], "...")
	fmt.Fprintln(w, "   ", y[:12], "...")
	fmt.Fprintln(w, "the last of", len(y), "is", y[len(y)-1])
	return nil
}

// sums returns the running sums of x. The three launches are one submission.
func sums(ctx context.Context, dev *device.Device, x []uint32) ([]uint32, error) {
	if len(x) == 0 {
		return nil, nil
	}
	var ks [3]*device.Kernel
	for i, k := range []*kernel.Kernel{blocks, offsets, shift} {
		var err error
		if ks[i], err = dev.Kernel(ctx, k); err != nil {
			return nil, err
		}
	}
	n := (len(x) + lanes - 1) / lanes
	grid := kernel.GridOf(n)
	b := batch.New(dev)
	in := batch.Upload(b, x)
	block := b.Launch(ks[0], grid, nil, batch.In(in), batch.Out(op.U32, len(x)), batch.Out(op.U32, n))
	before := b.Launch(ks[1], kernel.Grid(1), nil, batch.InOut(block[1]))
	y := b.Launch(ks[2], grid, nil, batch.In(before[0]), batch.InOut(block[0]))
	if err := b.Execute(ctx, y[0]); err != nil {
		return nil, err
	}
	return batch.Read[uint32](ctx, b, y[0])
}
