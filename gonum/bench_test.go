package gonum

import (
	"fmt"
	"testing"

	"gonum.org/v1/gonum/blas"
	reference "gonum.org/v1/gonum/blas/gonum"
)

// Each routine beside gonum's own, on square matrices.
func Benchmark(b *testing.B) {
	ours := NewBLAS()
	defer ours.Close()
	for _, n := range []int{64, 256, 1000} {
		a, x, c := make([]float32, n*n), make([]float32, n*n), make([]float32, n*n)
		for i := range a {
			a[i], x[i] = float32(i%17)/17, float32(i%13)/13
			if i%(n+1) == 0 {
				a[i] = float32(n)
			}
		}
		for _, r := range []struct {
			name  string
			flops int
			run   func(i blas.Float32)
		}{
			{"Sgemm", 2 * n * n * n, func(i blas.Float32) { i.Sgemm('N', 'T', n, n, n, 1, a, n, x, n, 0, c, n) }},
			{"Ssyrk", n * n * n, func(i blas.Float32) { i.Ssyrk('L', 'N', n, n, -1, a, n, 1, c, n) }},
			{"Strsm", n * n * n, func(i blas.Float32) { i.Strsm('L', 'L', 'N', 'N', n, n, 1, a, n, x, n) }},
			{"Sgemv", 2 * n * n, func(i blas.Float32) { i.Sgemv('N', n, n, 1, a, n, x, 1, 0, c, 1) }},
		} {
			for _, by := range []struct {
				name string
				impl blas.Float32
			}{{"rayo", ours}, {"gonum", reference.Implementation{}}} {
				b.Run(fmt.Sprintf("%s/%d/%s", r.name, n, by.name), func(b *testing.B) {
					for b.Loop() {
						r.run(by.impl)
					}
					b.ReportMetric(float64(r.flops)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
				})
			}
		}
	}
}
