package kernel_test

import (
	"fmt"
	"testing"

	"github.com/rayo-go/rayo/kernel"
)

type matmulParams struct{ M, N, K uint32 }

// tiles are the tile sizes by which the product below is specialised.
type tiles struct{ Rows, Cols, Depth int }

// matmul multiplies in tiles: each lane holds 8 rows by 8 columns of the result.
var matmul = kernel.NewFamily("matmul", buildMatmul)

func buildMatmul(b *kernel.Builder, p *matmulParams, s tiles) {
	const rows, cols = 8, 2 // of a lane, columns in vectors of 4
	lanesX, lanesY := s.Cols/8, s.Rows/8
	b.LocalSize(lanesX, lanesY, 1)
	x := kernel.Input[kernel.Vec4F](b, "a")
	y := kernel.Input[kernel.Vec4F](b, "b")
	z := kernel.Output[kernel.Vec4F](b, "c")
	xs := kernel.Shared[kernel.Vec4F](b, "at", s.Rows*s.Depth/4)
	ys := kernel.Shared[kernel.Vec4F](b, "bt", s.Cols*s.Depth/4)
	n, k := b.U32(&p.N), b.U32(&p.K)
	acc := kernel.NewVars(b, "acc", rows*cols, kernel.Vec4F{})
	row0, col0 := b.GroupY().Mul(kernel.N(s.Rows)), b.GroupX().Mul(kernel.N(s.Cols))
	lane := b.Lane()
	b.ForStep(kernel.U(0), k, kernel.N(s.Depth), func(k0 kernel.U32) {
		b.Barrier()
		for i := range s.Rows * s.Depth / 4 / (lanesX * lanesY) {
			at := lane.Add(kernel.N(i * lanesX * lanesY))
			r, c := at.Div(kernel.N(s.Depth/4)), at.Mod(kernel.N(s.Depth/4))
			xs.Set(at, x.At(row0.Add(r).Mul(k).Add(k0).Div(kernel.U(4)).Add(c)))
		}
		for i := range s.Cols * s.Depth / 4 / (lanesX * lanesY) {
			at := lane.Add(kernel.N(i * lanesX * lanesY))
			r, c := at.Div(kernel.N(s.Cols/4)), at.Mod(kernel.N(s.Cols/4))
			ys.Set(at, y.At(k0.Add(r).Mul(n).Add(col0).Div(kernel.U(4)).Add(c)))
		}
		b.Barrier()
		for kk := 0; kk < s.Depth; kk += 4 {
			var xv [rows]kernel.Vec4F
			for r := range xv {
				xv[r] = xs.At(b.LocalY().Mul(kernel.U(rows)).Add(kernel.N(r)).Mul(kernel.N(s.Depth / 4)).Add(kernel.N(kk / 4)))
			}
			for j := range 4 {
				var yv [cols]kernel.Vec4F
				for c := range yv {
					yv[c] = ys.At(b.LocalX().Mul(kernel.U(cols)).Add(kernel.N((kk+j)*s.Cols/4 + c)))
				}
				for r := range rows {
					a := xv[r].At(j).Splat4()
					for c := range cols {
						v := acc[r*cols+c]
						v.Set(a.Fma(yv[c], v.Get()))
					}
				}
			}
		}
	})
	for r := range rows {
		row := row0.Add(b.LocalY().Mul(kernel.U(rows)).Add(kernel.N(r)))
		for c := range cols {
			col := col0.Div(kernel.U(4)).Add(b.LocalX().Mul(kernel.U(cols)).Add(kernel.N(c)))
			z.Set(row.Mul(n.Div(kernel.U(4))).Add(col), acc[r*cols+c].Get())
		}
	}
}

// BenchmarkBuild builds a product with 64 accumulators and an inner loop that is
// unrolled so many times.
func BenchmarkBuild(b *testing.B) {
	for _, depth := range []int{4, 8, 16} {
		s := tiles{128, 128, depth}
		p, err := matmul.Of(s).Program()
		if err != nil {
			b.Fatal(err)
		}
		n := len(p.Code)
		b.Run(fmt.Sprintf("unroll%d", depth), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				k := kernel.NewFamily("matmul", buildMatmul).Of(s)
				if k.Err() != nil {
					b.Fatal(k.Err())
				}
				i++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(i*n), "ns/instruction")
			b.ReportMetric(float64(n), "instructions")
		})
	}
}

func BenchmarkFamilyLookUp(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		matmul.Of(tiles{128, 128, 16})
	}
}
