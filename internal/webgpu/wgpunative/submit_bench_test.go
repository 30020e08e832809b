//go:build cgo && !nowebgpu && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package wgpunative

import (
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/hosttest"
)

// BenchmarkCalls measures the processor's time for the calls of a round trip, and the device's time.
func BenchmarkCalls(b *testing.B) {
	d := hosttest.Open(b, New, driver)
	buffer := func(n int64, u webgpu.Usage) webgpu.HostBuffer {
		m, err := d.NewBuffer(n, u)
		if err != nil {
			b.Fatal(err)
		}
		return m
	}
	up, x, y, down := buffer(4096, webgpu.Upload), buffer(4096, webgpu.Storage), buffer(4096, webgpu.Storage), buffer(4096, webgpu.Readback)
	p, err := d.NewPipeline(hosttest.Shader)
	if err != nil {
		b.Fatal(err)
	}
	g, err := d.NewGroup(p, []webgpu.HostRange{{Buffer: x, Bytes: 4096}, {Buffer: y, Bytes: 4096}})
	if err != nil {
		b.Fatal(err)
	}
	copyUp := webgpu.HostCommand{Do: webgpu.Copy, Src: up, Dst: x, Bytes: 16}
	run := webgpu.HostCommand{Do: webgpu.Dispatch, Pipeline: p, Group: g, Grid: [3]uint32{1, 1, 1}}
	copyDown := webgpu.HostCommand{Do: webgpu.Copy, Src: y, Dst: down, Bytes: 16}
	up.Unmap()
	in, out := buffer(4096, webgpu.Input), buffer(4096, webgpu.Output)
	direct, err := d.NewGroup(p, []webgpu.HostRange{{Buffer: in, Bytes: 4096}, {Buffer: out, Bytes: 4096}})
	if err != nil {
		b.Fatal(err)
	}
	in.Unmap()
	runDirect := webgpu.HostCommand{Do: webgpu.Dispatch, Pipeline: p, Group: direct, Grid: [3]uint32{1, 1, 1}}
	half, err := d.NewGroup(p, []webgpu.HostRange{{Buffer: in, Bytes: 4096}, {Buffer: y, Bytes: 4096}})
	if err != nil {
		b.Fatal(err)
	}
	runHalf := webgpu.HostCommand{Do: webgpu.Dispatch, Pipeline: p, Group: half, Grid: [3]uint32{1, 1, 1}}
	for _, c := range []struct {
		name  string
		list  []webgpu.HostCommand
		remap []webgpu.HostBuffer
	}{
		{"nothing", nil, nil},
		{"dispatch", []webgpu.HostCommand{run}, nil},
		{"copy", []webgpu.HostCommand{copyDown}, nil},
		{"dispatch,copy", []webgpu.HostCommand{run, copyDown}, nil},
		{"dispatch,copy,map", []webgpu.HostCommand{run, copyDown}, []webgpu.HostBuffer{down}},
		{"copy,dispatch,copy,map,map", []webgpu.HostCommand{copyUp, run, copyDown}, []webgpu.HostBuffer{up, down}},
		{"direct,map", []webgpu.HostCommand{runDirect}, []webgpu.HostBuffer{out}},
		{"direct,map,map", []webgpu.HostCommand{runDirect}, []webgpu.HostBuffer{in, out}},
		{"half,copy,map,map", []webgpu.HostCommand{runHalf, copyDown}, []webgpu.HostBuffer{in, down}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var submit, wait, mapped, unmap time.Duration
			polls := 0
			for b.Loop() {
				t0 := time.Now()
				ticket, err := d.Submit(c.list, c.remap)
				t1 := time.Now()
				for done := uint64(0); err == nil && done < ticket; polls++ {
					done, err = d.Poll()
				}
				t2 := time.Now()
				if err != nil {
					b.Fatal(err)
				}
				for _, m := range c.remap {
					m.Mapped()
				}
				t3 := time.Now()
				for _, m := range c.remap {
					m.Unmap()
				}
				submit, wait, mapped, unmap = submit+t1.Sub(t0), wait+t2.Sub(t1), mapped+t3.Sub(t2), unmap+time.Since(t3)
			}
			n := float64(b.N)
			b.ReportMetric(float64(submit)/n, "ns/submit")
			b.ReportMetric(float64(wait)/n, "ns/wait")
			b.ReportMetric(float64(mapped)/n, "ns/mapped")
			b.ReportMetric(float64(unmap)/n, "ns/unmap")
			b.ReportMetric(float64(polls)/n, "polls")
		})
	}
	up.Release()
	x.Release()
	y.Release()
	down.Release()
	in.Release()
	out.Release()
	g.Release()
	direct.Release()
	half.Release()
	p.Release()
}
