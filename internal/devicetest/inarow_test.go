//go:build (linux || windows) && !nocuda

package devicetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/op"
)

// mlp is the second half of a transformer layer of a model with 8 billion parameters for one row, with weights in
// Q4_K.
func mlp(b *testing.B, dev *device.Device, width, hidden int) *batch.Plan {
	b.Helper()
	ctx := context.Background()
	weights := func(n, k int) *device.Buffer {
		raw := make([]byte, n*k/block.Q4_K.Elements()*block.Q4_K.Bytes())
		buf, err := device.UploadBlocks(ctx, dev, raw, op.Q4_K, n, k)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { buf.Close() })
		return buf
	}
	rec := batch.New(dev)
	x := rec.Upload(make([]float32, width), 1, width)
	n := rec.RMSNorm(x, batch.None)
	gate, up := rec.MatMulQ(n, rec.Use(weights(hidden, width)), batch.None), rec.MatMulQ(n, rec.Use(weights(hidden, width)), batch.None)
	rec.Keep(rec.Add(x, rec.MatMulQ(rec.Mul(rec.Silu(gate), up), rec.Use(weights(width, hidden)), batch.None)))
	p, err := rec.Compile(ctx)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { p.Close() })
	return p
}

// BenchmarkCUDAInARow compares a plan that is waited for each time with plans that are submitted
// in a row, at most so many at a time. submit-ns is the time that RunAsync itself takes.
func BenchmarkCUDAInARow(b *testing.B) {
	dev := openCUDA(b)
	defer dev.Close()
	ctx := context.Background()
	for _, size := range [][2]int{{256, 512}, {4096, 14336}} {
		p := mlp(b, dev, size[0], size[1])
		b.Run(fmt.Sprintf("%dx%d/run", size[0], size[1]), func(b *testing.B) {
			for b.Loop() {
				if err := p.Run(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
		for _, depth := range []int{1, 2, 4, 16, 64} {
			b.Run(fmt.Sprintf("%dx%d/async%d", size[0], size[1], depth), func(b *testing.B) {
				var submit time.Duration
				pending := make([]*device.Pending, depth)
				i := 0
				for ; b.Loop(); i++ {
					if old := pending[i%depth]; old != nil {
						if err := old.Wait(ctx); err != nil {
							b.Fatal(err)
						}
					}
					start := time.Now()
					pending[i%depth] = p.RunAsync(ctx)
					submit += time.Since(start)
				}
				for _, old := range pending {
					if old != nil {
						if err := old.Wait(ctx); err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ReportMetric(float64(submit.Nanoseconds())/float64(i), "submit-ns")
			})
		}
	}
}
