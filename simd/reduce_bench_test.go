package simd

import (
	"fmt"
	"testing"

	"github.com/rayo-go/rayo/internal/memory"
	"github.com/rayo-go/rayo/internal/workers"
)

var benchSizes = []int{100, 1000, 10_000, 100_000, 1_000_000, 10_000_000}

func BenchmarkReduce(b *testing.B) {
	x, _ := memory.Floats(10_000_000)
	y, _ := memory.Floats(10_000_000)
	uniform(x, -1, 1)
	uniform(y, -1, 1)
	for _, threads := range []int{1, 2} {
		p := workers.New(threads)
		for _, r := range []Reduction{ReduceSum, ReduceDot, ReduceMax, ReduceSumSquares, ReduceVar, ReduceArgMax} {
			for _, n := range benchSizes {
				b.Run(fmt.Sprintf("%v/n=%d/threads=%d", r, n, threads), func(b *testing.B) {
					bytes := 4 * n
					var other []float32
					if r == ReduceDot {
						other, bytes = y[:n], 2*bytes
					}
					b.SetBytes(int64(bytes))
					for b.Loop() {
						Fold(p, r, x[:n], other)
					}
				})
			}
		}
		p.Close()
	}
}
