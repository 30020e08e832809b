package ptxkernels

import (
	"fmt"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
)

// BenchmarkGPUSkinny checks and measures products with vectors (n = 0 is a matrix-vector product),
// and reports the bytes of the matrix per second.
func BenchmarkGPUSkinny(b *testing.B) {
	x := newBench(b, 8192*8192)
	for _, c := range []struct {
		m, k, n int
		o       op.MatMulOpts
	}{
		{8192, 8192, 0, op.MatMulOpts{}},
		{8192, 8192, 0, op.MatMulOpts{TransA: true}},
		{8191, 8189, 0, op.MatMulOpts{}},
		{8191, 8189, 0, op.MatMulOpts{TransA: true}},
		{100, 600000, 0, op.MatMulOpts{}},
		{600000, 100, 0, op.MatMulOpts{}},
		{100, 600000, 0, op.MatMulOpts{TransA: true}},
		{1, 8192, 8192, op.MatMulOpts{}},
		{2, 8192, 8192, op.MatMulOpts{TransB: true}},
		{4, 8192, 8192, op.MatMulOpts{}},
		{4, 8192, 8192, op.MatMulOpts{TransB: true}},
		{8, 8192, 8192, op.MatMulOpts{}},
		{8, 8192, 8192, op.MatMulOpts{TransB: true}},
		{8192, 8192, 3, op.MatMulOpts{}},
		{8192, 8192, 8, op.MatMulOpts{}},
		{1024, 1024, 0, op.MatMulOpts{}},
		{65536, 1024, 0, op.MatMulOpts{}},
	} {
		var r *portable.Request
		if c.n == 0 {
			shape := op.Shape{c.m, c.k}
			if c.o.TransA {
				shape = op.Shape{c.k, c.m}
			}
			r = &portable.Request{Op: op.MatVec, Attrs: op.MatVecOpts{Trans: c.o.TransA}.Attrs(), In: []portable.Array{{Type: op.F32, Shape: shape}, {Type: op.F32, Shape: op.Shape{c.k}}},
				Out: []portable.Array{{Type: op.F32, Shape: op.Shape{c.m}}}}
			c.n = 1
		} else {
			r = product{c.m, c.k, c.n}.request(c.o)
		}
		name := fmt.Sprintf("%dx%dx%d%s%s", c.m, c.k, c.n, flag(c.o.TransA, "ta"), flag(c.o.TransB, "tb"))
		b.Run(name, func(b *testing.B) {
			p, err := planSkinny(r, &x.desc)
			if err != nil {
				b.Fatal(err)
			}
			f, err := x.launcher(p)
			if err == nil {
				err = x.verify(product{c.m, c.k, c.n}, c.o, f)
			}
			if err != nil {
				b.Fatal(err)
			}
			bytes := 4 * (c.m*c.k + c.k*c.n + c.m*c.n)
			for b.Loop() {
				d, err := x.best(f, 5*time.Millisecond, 4)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(bytes)/d.Seconds()/1e12, "TB/s")
				b.ReportMetric(d.Seconds()*1e6, "us")
			}
		})
	}
}

func flag(b bool, s string) string {
	if b {
		return s
	}
	return ""
}
