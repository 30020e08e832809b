//go:build cgo && !nowebgpu && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package wgpunative

import (
	"fmt"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/hosttest"
)

func BenchmarkTrip(b *testing.B) { hosttest.BenchmarkTrips(b, New, driver) }

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

// BenchmarkSubmit measures the parts of a round trip.
func BenchmarkSubmit(b *testing.B) {
	d := hosttest.Guarded(b, New, driver)
	r, err := hosttest.NewRig(d, 1<<20, webgpu.Storage, webgpu.Storage)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Free()
	r.Fill()
	r.In, r.Out = nil, nil
	run := r.Submission.Commands[0]
	small := run
	small.Grid = [3]uint32{1, 1, 1}
	commands := func(c webgpu.Command, n int) []webgpu.Command {
		var l []webgpu.Command
		for range n {
			l = append(l, c)
		}
		return l
	}
	word := []webgpu.Transfer{{Host: make([]byte, 16), Buffer: r.Y}}
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
	b.Run("upload4M", func(b *testing.B) { benchmark(b, d, &webgpu.Submission{Uploads: r.Submission.Uploads}, 4<<20) })
	b.Run("download4M", func(b *testing.B) { benchmark(b, d, &webgpu.Submission{Downloads: r.Submission.Downloads}, 4<<20) })
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
	d := hosttest.Guarded(b, New, driver)
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
	d := hosttest.Guarded(b, New, driver)
	n := int(min(128<<20, d.Adapter().Binding) / 4)
	r, err := hosttest.NewRig(d, n, webgpu.Storage, webgpu.Storage)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Free()
	var stamps []uint64
	c := r.Submission.Commands[0]
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

// BenchmarkBind binds buffers that were bound before, and buffers that were not.
func BenchmarkBind(b *testing.B) {
	d := hosttest.Guarded(b, New, driver)
	r, err := hosttest.NewRig(d, 1<<20, webgpu.Storage, webgpu.Storage)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Free()
	bind := func(b *testing.B, off int64) {
		g, err := d.Bind(r.Pipeline, []webgpu.Range{{Buffer: r.X, Off: off, Bytes: 4}, {Buffer: r.Y, Bytes: 4 << 20}})
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
			p, err := d.Compile(ctx, hosttest.Shader)
			if err != nil {
				b.Fatal(err)
			}
			p.Free()
		}
	})
}

// BenchmarkOpen measures the time from opening the library to the first result.
func BenchmarkOpen(b *testing.B) {
	hosttest.Adapter(b, New, driver)
	var list, open, compile, run time.Duration
	for b.Loop() {
		start := time.Now()
		h, index := hosttest.Adapter(b, New, driver)
		if _, err := h.Adapters(ctx); err != nil {
			b.Fatal(err)
		}
		t1 := time.Now()
		d, err := webgpu.Open(ctx, h, index)
		if err != nil {
			b.Fatal(err)
		}
		t2 := time.Now()
		r, err := hosttest.NewRig(d, 4, webgpu.Input, webgpu.Output)
		if err != nil {
			b.Fatal(err)
		}
		t3 := time.Now()
		if err := d.Run(ctx, &r.Submission); err != nil {
			b.Fatal(err)
		}
		t4 := time.Now()
		r.Free()
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
