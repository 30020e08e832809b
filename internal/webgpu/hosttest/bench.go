package hosttest

import (
	"fmt"
	"testing"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// BenchmarkTrips is relu with operands that come from the host and results that go
// there, through stages and without.
func BenchmarkTrips(b *testing.B, library Library, driver string) {
	d := Guarded(b, library, driver)
	for _, n := range []int{4, 1 << 10, 64 << 10, 256 << 10, 1 << 20, 2 << 20, 4 << 20, 32 << 20} {
		if int64(4*n) > d.Adapter().Binding {
			continue
		}
		trip := func(from, to webgpu.Usage) func(b *testing.B) {
			return func(b *testing.B) {
				r, err := NewRig(d, n, from, to)
				if err != nil {
					b.Fatal(err)
				}
				defer r.Free()
				r.Fill()
				for b.Loop() {
					if err := d.Run(ctx, &r.Submission); err != nil {
						b.Fatal(err)
					}
				}
				b.StopTimer()
				b.SetBytes(int64(8 * n))
				if err := r.Check(); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.Run(fmt.Sprint(n), trip(webgpu.Storage, webgpu.Storage))
		if n <= 2<<20 && d.Adapter().Mappable {
			b.Run(fmt.Sprint(n, ",near"), trip(webgpu.Input, webgpu.Output))
			b.Run(fmt.Sprint(n, ",input"), trip(webgpu.Input, webgpu.Storage))
		}
	}
}
