//go:build cgo && !nowebgpu && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package wgpunative

import (
	"sync"
	"testing"

	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/hosttest"
)

// BenchmarkMapped copies to and from memory that the device reaches, with one
// thread and with several.
func BenchmarkMapped(b *testing.B) {
	d := hosttest.Open(b, New, driver)
	const n = 8 << 20
	up, err := d.NewBuffer(n, webgpu.Upload)
	if err != nil {
		b.Fatal(err)
	}
	defer up.Release()
	down, err := d.NewBuffer(n, webgpu.Readback)
	if err != nil {
		b.Fatal(err)
	}
	defer down.Release()
	ticket, err := d.Submit([]webgpu.HostCommand{{Do: webgpu.Clear, Dst: down, Bytes: n}}, []webgpu.HostBuffer{down})
	for done := uint64(0); err == nil && done < ticket; {
		done, err = d.Poll()
	}
	if err != nil {
		b.Fatal(err)
	}
	own := make([]byte, n)
	with := func(threads int, dst, src []byte) func(b *testing.B) {
		return func(b *testing.B) {
			for b.Loop() {
				var all sync.WaitGroup
				for i := range threads {
					lo, hi := i*n/threads, (i+1)*n/threads
					all.Go(func() { copy(dst[lo:hi], src[lo:hi]) })
				}
				all.Wait()
			}
			b.SetBytes(n)
		}
	}
	b.Run("up/1", with(1, up.Mapped(), own))
	b.Run("up/8", with(8, up.Mapped(), own))
	b.Run("down/1", with(1, own, down.Mapped()))
	b.Run("down/8", with(8, own, down.Mapped()))
	in, err := d.NewBuffer(n, webgpu.Input)
	if err != nil {
		b.Fatal(err)
	}
	defer in.Release()
	b.Run("input/1", with(1, in.Mapped(), own))
	b.Run("input/4", with(4, in.Mapped(), own))
	b.Run("input/8", with(8, in.Mapped(), own))
	b.Run("up/4", with(4, up.Mapped(), own))
	b.Run("poll", func(b *testing.B) {
		for b.Loop() {
			if _, err := d.Poll(); err != nil {
				b.Fatal(err)
			}
		}
	})
	down.Unmap()
}

// BenchmarkDirect is relu over memory that the host reaches.
func BenchmarkDirect(b *testing.B) {
	d := hosttest.Open(b, New, driver)
	const n = 4 << 20
	p, err := d.NewPipeline(hosttest.Shader)
	if err != nil {
		b.Fatal(err)
	}
	defer p.Release()
	for _, c := range []struct {
		name string
		x, y webgpu.Usage
	}{{"resident", webgpu.Storage, webgpu.Storage}, {"input", webgpu.Input, webgpu.Storage}, {"output", webgpu.Storage, webgpu.Output}, {"both", webgpu.Input, webgpu.Output}} {
		b.Run(c.name, func(b *testing.B) {
			x, err := d.NewBuffer(n, c.x)
			if err != nil {
				b.Fatal(err)
			}
			defer x.Release()
			y, err := d.NewBuffer(n, c.y)
			if err != nil {
				b.Fatal(err)
			}
			defer y.Release()
			if c.x == webgpu.Input {
				x.Unmap()
			}
			g, err := d.NewGroup(p, []webgpu.HostRange{{Buffer: x, Bytes: n}, {Buffer: y, Bytes: n}})
			if err != nil {
				b.Fatal(err)
			}
			defer g.Release()
			for b.Loop() {
				ticket, err := d.Submit([]webgpu.HostCommand{{Do: webgpu.Dispatch, Pipeline: p, Group: g, Grid: [3]uint32{n / 1024, 1, 1}}}, nil)
				for done := uint64(0); err == nil && done < ticket; {
					done, err = d.Poll()
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(2 * n)
		})
	}
}
