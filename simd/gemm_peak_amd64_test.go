//go:build amd64 && !noasm && !wazero

package simd

import "testing"

// BenchmarkPeak measures the peak rate that no kernel can exceed: independent
// multiply-adds on registers.
func BenchmarkPeak(b *testing.B) {
	const passes, vectors = 100_000, 12
	for _, l := range []struct {
		level Level
		lanes int
		loop  func(passes int)
	}{{AVX2, 8, gemmPeakAVX2}, {AVX512, 16, gemmPeakAVX512}} {
		if active < l.level {
			continue
		}
		b.Run(l.level.String(), func(b *testing.B) {
			for b.Loop() {
				l.loop(passes)
			}
			b.ReportMetric(float64(b.N)*passes*vectors*float64(l.lanes)*2/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
		})
	}
}
