//go:build !nowebgpu && !goffi_static && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package gogpu

import (
	"fmt"
	"testing"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// BenchmarkRoundTrip is an upload, a kernel and a download, in buffers that are there.
func BenchmarkRoundTrip(b *testing.B) {
	for _, n := range []int64{1, 1 << 10, 1 << 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d := open(b, "lavapipe")
			buffer := func(u webgpu.Usage) webgpu.HostBuffer {
				return must[webgpu.HostBuffer](b)(d.NewBuffer(4*n, u))
			}
			up, x, y, down := buffer(webgpu.Upload), buffer(webgpu.Storage), buffer(webgpu.Storage), buffer(webgpu.Readback)
			p := must[webgpu.HostPipeline](b)(d.NewPipeline(&webgpu.Shader{Label: "relu", Text: relu, Entry: "main", Bindings: []webgpu.BindingKind{webgpu.ReadOnly, webgpu.ReadWrite}, Trusted: true}))
			g := must[webgpu.HostGroup](b)(d.NewGroup(p, []webgpu.HostRange{{Buffer: x, Bytes: 4 * n}, {Buffer: y, Bytes: 4 * n}}))
			list := []webgpu.HostCommand{
				{Do: webgpu.Copy, Src: up, Dst: x, Bytes: 4 * n},
				{Do: webgpu.Dispatch, Pipeline: p, Group: g, Grid: [3]uint32{uint32(n+63) / 64, 1, 1}},
				{Do: webgpu.Copy, Src: y, Dst: down, Bytes: 4 * n},
			}
			b.ReportAllocs()
			for b.Loop() {
				clear(up.Mapped())
				up.Unmap()
				ticket, err := d.Submit(list, []webgpu.HostBuffer{up, down})
				if err == nil {
					err = wait(d, ticket)
				}
				if err != nil {
					b.Fatal(err)
				}
				_ = down.Mapped()[0]
				down.Unmap()
			}
		})
	}
}
