package block

import (
	"math/rand/v2"
	"testing"
)

const benchElements = 1 << 16

// BenchmarkDequantize counts the bytes of the blocks.
func BenchmarkDequantize(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, f := range Formats() {
		b.Run(f.String(), func(b *testing.B) {
			src := randomBlocks(r, f, benchElements/f.Elements())
			dst := make([]float32, benchElements)
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				if err := f.Dequantize(dst, src); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*benchElements/b.Elapsed().Seconds()/1e6, "Melem/s")
		})
	}
}

// BenchmarkQuantize counts the bytes of the numbers.
func BenchmarkQuantize(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 4))
	src := make([]float32, benchElements)
	for i := range src {
		src[i] = float32(r.NormFloat64())
	}
	for _, f := range Formats() {
		b.Run(f.String(), func(b *testing.B) {
			dst := make([]byte, benchElements/f.Elements()*f.Bytes())
			b.SetBytes(4 * benchElements)
			for b.Loop() {
				if err := f.QuantizeWeighted(dst, src, ones(f)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*benchElements/b.Elapsed().Seconds()/1e6, "Melem/s")
		})
	}
}
