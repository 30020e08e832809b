//go:build (linux || windows) && !nocuda && !race

package devicetest

import (
	"testing"
	"time"

	"github.com/rayo-go/rayo/batch"
	cu "github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/device"
)

// BenchmarkCUDAPipeline streams 20 GB of numbers from host memory through relu and sum, in chunks of
// several sizes, with locked pages and without. Copies from page-locked memory before and after show
// the rate of the bus.
func BenchmarkCUDAPipeline(b *testing.B) {
	const size, passes = 2 << 30, 10
	dev := openCUDA(b)
	defer dev.Close()
	bus, err := cu.Open(0)
	if err != nil {
		b.Fatal(err)
	}
	defer bus.Close()
	rate := busRate(b, bus, size)
	x := make([]float32, size/4)
	for i := range x {
		x[i] = float32(i%7 - 3)
	}
	for i, rows := range []int{0, 1 << 20, 8 << 20, 0, 1 << 20, 8 << 20} {
		start, pages := time.Now(), ""
		if i == 3 {
			locked, err := device.LockPages(dev, x)
			if err != nil {
				b.Fatal(err)
			}
			defer locked.Unlock()
			b.Logf("locking takes %v", time.Since(start))
		}
		if i >= 3 {
			pages = "locked pages, "
		}
		p, err := batch.NewPipeline[float32, float32](dev, func(r *batch.Batch, x batch.Value) batch.Value { return r.Sum(r.Relu(x)) }, batch.PipelineOpts{Rows: rows})
		if err != nil {
			b.Fatal(err)
		}
		best, total := 0.0, time.Duration(0)
		for range passes {
			start := time.Now()
			for _, err := range p.RunSlice(b.Context(), x) {
				if err != nil {
					b.Fatal(err)
				}
			}
			taken := time.Since(start)
			total += taken
			best = max(best, size/taken.Seconds())
		}
		p.Close()
		again := busRate(b, bus, size)
		b.Logf("%schunks of %d rows (0: as measured): %.1f GB/s, the fastest pass %.1f; bus before and after %.1f, %.1f GB/s",
			pages, rows, passes*size/total.Seconds()/1e9, best/1e9, rate/1e9, again/1e9)
		rate = again
	}
	b.ReportMetric(0, "ns/op")
}

// busRate returns the bytes per second of copies from page-locked memory to the device.
func busRate(b *testing.B, d *cu.Device, size int64) float64 {
	const part = 256 << 20
	h, err := d.AllocHost(part)
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	m, err := d.Alloc(part)
	if err != nil {
		b.Fatal(err)
	}
	defer m.Free()
	s, err := d.NewStream(0)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	copies := func(n int64) {
		for range n {
			if err := s.CopyFromHost(m.Ptr(), h, 0, part); err != nil {
				b.Fatal(err)
			}
		}
		if err := s.Synchronize(); err != nil {
			b.Fatal(err)
		}
	}
	copies(1)
	start := time.Now()
	copies(size / part)
	return float64(size) / time.Since(start).Seconds()
}
