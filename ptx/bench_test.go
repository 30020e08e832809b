package ptx_test

import (
	"testing"

	"github.com/rayo-go/rayo/ptx"
	"github.com/rayo-go/rayo/ptx/samples"
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

// BenchmarkGeneration builds each sample and writes its text, into memory that is
// used again: make bench-ptx compares it with another generator. module_emit is
// the text alone, of a kernel without code.
func BenchmarkGeneration(b *testing.B) {
	for _, s := range samples.All() {
		b.Run(s.Name, func(b *testing.B) {
			m := ptx.NewModule(ptx.SM90)
			var text []byte
			var err error
			instructions := 0
			b.ReportAllocs()
			for b.Loop() {
				m.Reset()
				instructions = m.Kernel(s.Name, s.Build).Instructions()
				if text, err = m.AppendPTX(text[:0]); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(instructions), "ns/instr")
			b.ReportMetric(float64(instructions), "instr")
		})
	}
	b.Run("module_emit", func(b *testing.B) {
		m := ptx.NewModule(ptx.SM70)
		m.Kernel("vector_add", func(k *ptx.Kernel) {
			for _, name := range []string{"a", "b", "c"} {
				ptx.GlobalParam[ptx.F32](k, name)
			}
			ptx.Param[ptx.U32](k, "n")
		})
		var text []byte
		var err error
		b.ReportAllocs()
		for b.Loop() {
			if text, err = m.AppendPTX(text[:0]); err != nil {
				b.Fatal(err)
			}
		}
	})
}
