package simd

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/memory"
)

func BenchmarkMap(b *testing.B) {
	for _, level := range Supported() {
		if level == Generic {
			continue
		}
		for _, name := range []string{"relu", "add", "exp", "tanh", "sigmoid", "gelu", "log", "sin", "pow", "clip", "softplus"} {
			for _, n := range []int{100, 1000, 10_000, 100_000, 1_000_000, 10_000_000} {
				b.Run(fmt.Sprintf("%s/%v/%d", name, level, n), func(b *testing.B) {
					var s [3][]float32
					for i := range s {
						s[i], _ = memory.Floats(n)
						for j := range s[i] {
							s[i][j] = float32(rand.NormFloat64())
						}
					}
					p := []float32{-1, 1}
					f := MapAt(level, name)
					b.SetBytes(8 * int64(n))
					b.ResetTimer()
					for range b.N {
						f(&s[0][0], &s[1][0], &s[2][0], nil, n, &p[0])
					}
				})
			}
		}
	}
}
