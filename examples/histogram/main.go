// Command histogram counts how often each brightness occurs in a picture, with a
// user-defined kernel: each workgroup counts with atomics in workgroup memory, and then
// adds each of its counts to the result with one atomic addition.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"strings"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/kernel"
)

const (
	bins  = 256
	lanes = 256 // lanes of a workgroup
	each  = 16  // elements counted by a lane
)

// histogram counts the values of x, which are below 256. Thousands of lanes that
// add to the same 256 numbers would wait for each other, so each workgroup first
// counts in its own memory.
var histogram = kernel.New("histogram", func(b *kernel.Builder, _ *struct{}) {
	b.LocalSize(lanes, 1, 1)
	x := kernel.Input[kernel.U32](b, "x")
	total := kernel.Atomic[kernel.U32](b, "total")
	local := kernel.SharedAtomic[kernel.U32](b, "local", bins)

	lane := b.Lane()
	local.Store(lane, kernel.U(0)) // as many lanes as bins
	b.Barrier()
	first := b.Group().Mul(kernel.U(lanes * each))
	for i := range uint32(each) { // unrolls
		at := first.Add(kernel.U(i * lanes)).Add(lane)
		b.If(at.Lt(x.Len()), func() { local.Add(x.At(at).And(kernel.U(bins-1)), kernel.U(1)) })
	}
	b.Barrier()
	total.Add(lane, local.Load(lane))
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
	k, err := dev.Kernel(ctx, histogram)
	if err != nil {
		return err
	}
	x := picture(1000, 700)
	counts := make([]uint32, bins)
	// Out begins as zeros.
	if err := k.Run(ctx, kernel.GridOf((len(x)-1)/(lanes*each)+1), nil, device.In(x), device.Out(counts)); err != nil {
		return err
	}
	var most uint32
	for i := range 16 {
		most = max(most, sum(counts[16*i:][:16]))
	}
	for i := range 16 {
		n := sum(counts[16*i:][:16])
		fmt.Fprintf(w, "%3d to %3d %s %d\n", 16*i, 16*i+15, strings.Repeat("#", int(n*40/most)), n)
	}
	fmt.Fprintf(w, "%d of %d pixels counted\n", sum(counts), len(x))
	return nil
}

func sum(x []uint32) (s uint32) {
	for _, v := range x {
		s += v
	}
	return s
}

// picture draws brightnesses: a bright disc that fades into the dark.
func picture(width, height int) []uint32 {
	x := make([]uint32, width*height)
	for i := range x {
		dx, dy := float64(i%width-width/2), float64(i/width-height/2)
		x[i] = uint32(255 * math.Exp(-(dx*dx+dy*dy)/float64(height*height/6)))
	}
	return x
}
