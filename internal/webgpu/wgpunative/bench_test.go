package wgpunative

import (
	"fmt"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// BenchmarkTrip is relu with operands that come from the host and results that go
// there, through stages and without.
func BenchmarkTrip(b *testing.B) {
	d := guarded(b)
	for _, n := range []int{4, 1 << 10, 64 << 10, 256 << 10, 1 << 20, 2 << 20, 4 << 20, 32 << 20} {
		if int64(4*n) > d.Adapter().Binding {
			continue
		}
		trip := func(from, to webgpu.Usage) func(b *testing.B) {
			return func(b *testing.B) {
				r, err := newRig(d, n, from, to)
				if err != nil {
					b.Fatal(err)
				}
				defer r.free()
				r.fill()
				for b.Loop() {
					if err := d.Run(ctx, &r.submit); err != nil {
						b.Fatal(err)
					}
				}
				b.StopTimer()
				b.SetBytes(int64(8 * n))
				if err := r.check(); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.Run(fmt.Sprint(n), trip(webgpu.Storage, webgpu.Storage))
		if n <= 2<<20 {
			b.Run(fmt.Sprint(n, ",near"), trip(webgpu.Input, webgpu.Output))
			b.Run(fmt.Sprint(n, ",input"), trip(webgpu.Input, webgpu.Storage))
		}
	}
}

// benchmark runs a submission again and again.
func benchmark(b *testing.B, d *webgpu.Device, s *webgpu.Submission, bytes int) {
	for b.Loop() {
		if err := d.Run(ctx, s); err != nil {
			b.Fatal(err)
		}
	}
	if bytes > 0 {
		b.SetBytes(int64(bytes))
	}
}

// BenchmarkSubmit is what parts of a round trip cost.
func BenchmarkSubmit(b *testing.B) {
	d := guarded(b)
	r, err := newRig(d, 1<<20, webgpu.Storage, webgpu.Storage)
	if err != nil {
		b.Fatal(err)
	}
	defer r.free()
	r.fill()
	r.in, r.out = nil, nil
	run := r.submit.Commands[0]
	small := run
	small.Grid = [3]uint32{1, 1, 1}
	commands := func(c webgpu.Command, n int) []webgpu.Command {
		var l []webgpu.Command
		for range n {
			l = append(l, c)
		}
		return l
	}
	word := []webgpu.Transfer{{Host: make([]byte, 16), Buffer: r.y}}
	b.Run("dispatch", func(b *testing.B) { benchmark(b, d, &webgpu.Submission{Commands: commands(small, 1)}, 0) })
	b.Run("dispatch,download", func(b *testing.B) {
		benchmark(b, d, &webgpu.Submission{Commands: commands(small, 1), Downloads: word}, 0)
	})
	b.Run("upload,dispatch,download", func(b *testing.B) {
		benchmark(b, d, &webgpu.Submission{Uploads: word, Commands: commands(small, 1), Downloads: word}, 0)
	})
	for _, n := range []int{20, 100} {
		b.Run(fmt.Sprint(n, "dispatches,download"), func(b *testing.B) {
			benchmark(b, d, &webgpu.Submission{Commands: commands(small, n), Downloads: word}, 0)
		})
	}
	b.Run("upload4M", func(b *testing.B) { benchmark(b, d, &webgpu.Submission{Uploads: r.submit.Uploads}, 4<<20) })
	b.Run("download4M", func(b *testing.B) { benchmark(b, d, &webgpu.Submission{Downloads: r.submit.Downloads}, 4<<20) })
	b.Run("submitonly", func(b *testing.B) {
		s := &webgpu.Submission{Uploads: word, Commands: commands(small, 1), Downloads: word}
		var calls time.Duration
		for b.Loop() {
			start := time.Now()
			f, err := d.Submit(ctx, s, nil)
			calls += time.Since(start)
			if err == nil {
				err = f.Wait(ctx)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(calls.Nanoseconds())/float64(b.N), "ns/submit")
	})
}

// BenchmarkTransfer carries 256 MiB.
func BenchmarkTransfer(b *testing.B) {
	d := guarded(b)
	const n = 256 << 20
	x, err := d.NewBuffer(n, webgpu.Storage)
	if err != nil {
		b.Fatal(err)
	}
	defer x.Free()
	t := []webgpu.Transfer{{Host: make([]byte, n), Buffer: x}}
	b.Run("up", func(b *testing.B) { benchmark(b, d, &webgpu.Submission{Uploads: t}, n) })
	b.Run("down", func(b *testing.B) { benchmark(b, d, &webgpu.Submission{Downloads: t}, n) })
}

// BenchmarkResident is relu without transfers, by the device's clock.
func BenchmarkResident(b *testing.B) {
	d := guarded(b)
	n := int(min(128<<20, d.Adapter().Binding) / 4)
	r, err := newRig(d, n, webgpu.Storage, webgpu.Storage)
	if err != nil {
		b.Fatal(err)
	}
	defer r.free()
	var stamps []uint64
	c := r.submit.Commands[0]
	c.Stamp = true
	s := &webgpu.Submission{Commands: []webgpu.Command{c}, Stamps: &stamps}
	best := uint64(1 << 62)
	for b.Loop() {
		if err := d.Run(ctx, s); err != nil {
			b.Fatal(err)
		}
		if len(stamps) == 2 {
			best = min(best, stamps[1]-stamps[0])
		}
	}
	b.ReportMetric(float64(8*n)/float64(best), "GB/s")
}

// BenchmarkBind binds what was bound before, and what was not.
func BenchmarkBind(b *testing.B) {
	d := guarded(b)
	r, err := newRig(d, 1<<20, webgpu.Storage, webgpu.Storage)
	if err != nil {
		b.Fatal(err)
	}
	defer r.free()
	bind := func(b *testing.B, off int64) {
		g, err := d.Bind(r.p, []webgpu.Range{{Buffer: r.x, Off: off, Bytes: 4}, {Buffer: r.y, Bytes: 4 << 20}})
		if err != nil {
			b.Fatal(err)
		}
		g.Free()
	}
	b.Run("again", func(b *testing.B) {
		for b.Loop() {
			bind(b, 0)
		}
	})
	b.Run("new", func(b *testing.B) {
		i := int64(0)
		for b.Loop() {
			bind(b, i%4096*256)
			i++
		}
	})
	b.Run("buffer", func(b *testing.B) {
		for b.Loop() {
			x, err := d.NewBuffer(1<<20, webgpu.Storage)
			if err != nil {
				b.Fatal(err)
			}
			x.Free()
		}
	})
	b.Run("compiled", func(b *testing.B) {
		for b.Loop() {
			p, err := d.Compile(ctx, reluShader)
			if err != nil {
				b.Fatal(err)
			}
			p.Free()
		}
	})
}

// BenchmarkOpen is from nothing to the first result.
func BenchmarkOpen(b *testing.B) {
	library(b)
	var list, open, compile, run time.Duration
	for b.Loop() {
		start := time.Now()
		h, index := library(b)
		if _, err := h.Adapters(ctx); err != nil {
			b.Fatal(err)
		}
		t1 := time.Now()
		d, err := webgpu.Open(ctx, h, index)
		if err != nil {
			b.Fatal(err)
		}
		t2 := time.Now()
		r, err := newRig(d, 4, webgpu.Input, webgpu.Output)
		if err != nil {
			b.Fatal(err)
		}
		t3 := time.Now()
		if err := d.Run(ctx, &r.submit); err != nil {
			b.Fatal(err)
		}
		t4 := time.Now()
		r.free()
		if err := d.Close(); err != nil {
			b.Fatal(err)
		}
		list, open, compile, run = t1.Sub(start), t2.Sub(t1), t3.Sub(t2), t4.Sub(t3)
	}
	b.ReportMetric(list.Seconds()*1e3, "ms-list")
	b.ReportMetric(open.Seconds()*1e3, "ms-open")
	b.ReportMetric(compile.Seconds()*1e3, "ms-compile")
	b.ReportMetric(run.Seconds()*1e3, "ms-run")
}
