package wgpunative

import (
	"sync"
	"testing"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// BenchmarkMapped copies to and from memory that the device reaches, with one
// thread and with several.
func BenchmarkMapped(b *testing.B) {
	d := open(b)
	defer d.Close()
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
	b.Run("poll", func(b *testing.B) {
		for b.Loop() {
			if _, err := d.Poll(); err != nil {
				b.Fatal(err)
			}
		}
	})
	down.Unmap()
}
