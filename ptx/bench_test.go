package ptx_test

import (
	"testing"

	"github.com/rayo-go/rayo/ptx"
)

// BenchmarkKernel builds a kernel and writes its text, into memory that is used
// again. The instructions include labels.
func BenchmarkKernel(b *testing.B) {
	for _, k := range kernels {
		b.Run(k.name, func(b *testing.B) {
			m := ptx.NewModule(ptx.SM90)
			var text []byte
			var err error
			instructions := 0
			b.ReportAllocs()
			for b.Loop() {
				m.Reset()
				instructions = m.Kernel(k.name, k.build).Instructions()
				if text, err = m.AppendPTX(text[:0]); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(instructions), "ns/instr")
			b.ReportMetric(float64(instructions), "instr")
		})
	}
}

// BenchmarkText writes the text of kernels that are built.
func BenchmarkText(b *testing.B) {
	for _, k := range kernels {
		b.Run(k.name, func(b *testing.B) {
			m := ptx.NewModule(ptx.SM90)
			instructions := m.Kernel(k.name, k.build).Instructions()
			var text []byte
			var err error
			b.ReportAllocs()
			for b.Loop() {
				if text, err = m.AppendPTX(text[:0]); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(instructions), "ns/instr")
		})
	}
}
