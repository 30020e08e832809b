package emu

import (
	"testing"

	"github.com/rayo-go/rayo/ptx"
)

// BenchmarkLaunch measures the number of thread instructions per second.
func BenchmarkLaunch(b *testing.B) {
	for _, w := range []struct {
		name  string
		build func(k *ptx.Kernel)
		run   func(d device, k *Kernel)
	}{
		{"arithmetic", func(k *ptx.Kernel) {
			y := ptx.GlobalParam[ptx.F32](k, "y")
			v := ptx.NewVar(k, ptx.F(1))
			k.For(ptx.U(0), ptx.U(500), ptx.U(1), func(i ptx.U32) {
				for range 4 {
					ptx.MulAddTo(v, ptx.Reg(k, ptx.F(0.5)), ptx.F(1))
				}
			})
			y.At(k.Special(ptx.TidX)).Store(v.Get())
		}, func(d device, k *Kernel) {
			d.launch(k, Dim{}, Dim{X: 256}, 0, d.empty("y", 1024))
		}},
		{"relu", reluKernel(""), func(d device, k *Kernel) {
			n := 1 << 15
			d.launch(k, Dim{X: n / 512}, Dim{X: 128}, 0, d.floats("x", make([]float32, n)), d.empty("y", 4*n), uint32(n))
		}},
		{"gemm", gemmKernel(""), func(d device, k *Kernel) {
			n := 64
			x := d.floats("x", make([]float32, n*n))
			d.launch(k, Dim{X: n / tile, Y: n / tile}, Dim{X: tile, Y: tile}, 0, x, x, d.empty("y", 4*n*n), uint32(n), uint32(n), uint32(n))
		}},
		{"softmax", softmaxKernel(""), func(d device, k *Kernel) {
			d.launch(k, Dim{X: 8}, Dim{X: 128}, 0, d.floats("x", make([]float32, 1<<14)), d.empty("y", 4<<14), uint32(32), uint32(512))
		}},
		{"transpose", transposeKernel(""), func(d device, k *Kernel) {
			d.launch(k, Dim{X: 8, Y: 8}, Dim{X: 32, Y: 8}, 0, d.floats("x", make([]float32, 1<<16)), d.empty("y", 4<<16), uint32(256), uint32(256))
		}},
		{"histogram", histogramKernel(""), func(d device, k *Kernel) {
			d.launch(k, Dim{X: 8}, Dim{X: 128}, 0, d.words("x", make([]uint32, 1<<12)), d.words("y", make([]uint32, 256)), uint32(1<<14))
		}},
	} {
		for _, mode := range []struct {
			name string
			c    Config
		}{{"checked", Config{}}, {"unchecked", Config{Unchecked: true}}} {
			b.Run(w.name+"/"+mode.name, func(b *testing.B) {
				k := build(b, w.build)
				total := int64(0)
				for b.Loop() {
					d := newDevice(b, mode.c)
					w.run(d, k)
					total += d.Stats().Threads
				}
				b.ReportMetric(float64(total)/b.Elapsed().Seconds()/1e6, "Minstr/s")
			})
		}
	}
}
