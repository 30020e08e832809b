package simd

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/memory"
)

// BenchmarkMap measures kernels on one thread; /stream writes around the caches.
func BenchmarkMap(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000, 100_000, 1_000_000, 10_000_000} {
		var s [3][]float32 // allocated once: a fresh array is slow for a while
		p := []float32{-1, 1}
		for _, name := range []string{"relu", "add", "exp", "tanh", "sigmoid", "gelu", "log", "sin", "pow", "clip", "softplus", "cast.f16.f32", "cast.f32.f16", "cast.bf16.f32", "cast.f32.bf16", "code.round_f16", "code.round_bf16", "code.mul", "code.mul.f16", "code.mul.bf16"} {
			for _, level := range Supported() {
				measure := func(name string, f MapFunc) {
					b.Run(fmt.Sprintf("%s/%d/%v", name, n, level), func(b *testing.B) {
						for i := range s {
							if s[i] == nil {
								s[i], _ = memory.Floats(n)
								for j := range s[i] {
									s[i][j] = float32(rand.NormFloat64())
								}
							}
						}
						b.SetBytes(8 * int64(n))
						for b.Loop() {
							f(&s[0][0], &s[1][0], &s[2][0], nil, n, &p[0])
						}
					})
				}
				if level != Generic {
					measure(name, MapAt(level, name))
				}
				if f := StreamAt(level, name); f != nil && n >= 1_000_000 {
					measure(name+".stream", f)
				}
			}
		}
	}
}
