//go:build !js

package devicetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
)

// roundTrips measures round trips to a GPU: operations on slices, and twenty at
// once.
func roundTrips(b *testing.B, dev *device.Device) {
	ctx := context.Background()
	for _, n := range []int{4, 1 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("oneshot/relu/%d", n), func(b *testing.B) {
			x, dst := device.Alloc(n), device.Alloc(n)
			if err := dev.Relu(ctx, dst, x); err != nil { // compiles
				b.Fatal(err)
			}
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
				batch.ReadInto(r, v, y)
			}
			record()
			plan, err := r.Compile(ctx)
			if err != nil {
				b.Fatal(err)
			}
			defer plan.Close()
			if err := plan.Run(ctx); err != nil { // the first takes memory
				b.Fatal(err)
			}
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
