//go:build cgo && !nowebgpu

package webgpu_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
)

// TestWebGPUManyBatches checks that neither the memory of the process nor the number of the
// library's objects grows over many batches, and that a closed device leaves no objects.
func TestWebGPUManyBatches(t *testing.T) {
	const (
		goroutines = 16
		slack      = 8 << 20 // bytes: the fragmentation of allocators varies
	)
	many := 100_000
	fresh := 20 // one in fresh batches has a new constant
	if testing.Short() || testutil.Raced {
		many, fresh = 2_000, 4
	}
	c := takeCensus(t)
	ctx := t.Context()
	dev := open(t)
	w, err := device.Upload(ctx, dev, []float32{1, 2, 3, 4, 5, 6, 7, 8}, 8)
	if err != nil {
		t.Fatal(err)
	}
	round := func(b *batch.Batch, i int, scale float32) error {
		var x, y [64]float32
		n := 8 * (1 + i%8)
		for k := range n {
			x[k], y[k] = float32((i+k)%9-4), 7
		}
		b.Reset()
		v := b.Scale(b.Add(b.Upload(x[:n], n/8, 8), b.Use(w)), scale)
		s := b.Sum(v)
		batch.ReadInto(b, v, y[:n])
		if err := b.Execute(ctx); err != nil {
			return err
		}
		sum := float32(0)
		for k := range n {
			want := (x[k] + float32(1+k%8)) * scale
			if y[k] != want {
				return fmt.Errorf("element %d of %d is %v, not %v", k, n, y[k], want)
			}
			sum += want
		}
		if got, err := batch.Read[float32](ctx, b, s); err != nil || got[0] != sum {
			return fmt.Errorf("the sum is %v, not %v: %w", got, sum, err)
		}
		return nil
	}
	// some runs n batches. Batches with new constants create plans and evict old ones.
	constant := 2
	some := func(n, fresh int) {
		t.Helper()
		var all sync.WaitGroup
		for g := range goroutines {
			from := constant
			all.Go(func() {
				b := batch.New(dev)
				for i := g; i < n; i += goroutines {
					scale := float32(2)
					if i%fresh == 0 {
						scale = float32(from + i/fresh)
					}
					if err := round(b, i, scale); err != nil {
						t.Errorf("batch %d: %v", i, err)
						return
					}
				}
			})
		}
		all.Wait()
		constant += n / fresh
		if t.Failed() {
			t.FailNow()
		}
	}
	// rounds calls some for any n. Plans that the cache drops keep their resources until the
	// garbage collector runs. It runs equally often here, however large the heap is, so that as
	// many resources wait for it at the end as at the beginning.
	rounds := func(n, fresh int) {
		t.Helper()
		const most = 5000
		for ; n > 0; n -= most {
			some(min(n, most), fresh)
			testutil.Collect()
		}
	}
	// Warm up until all caches are full.
	rounds(800, 1)
	rounds(many/10, fresh)
	objects, stats := c.living(), dev.Stats()
	batches := int64(0)
	testutil.Flat(t, slack, func() {
		rounds(many, fresh)
		batches += int64(many)
	})
	after := dev.Stats()
	// Each new plan needs one more submission, to upload its parameters.
	if n, plans := after.Submissions-stats.Submissions, after.Compiled-stats.Compiled; n != batches || after.Submits-stats.Submits > n+plans {
		t.Errorf("%d batches of %d, %d plans, %d submissions to the library", n, batches, plans, after.Submits-stats.Submits)
	}
	// The size of the caches depends on the number of goroutines that ran at the same time.
	if l := c.living(); 4*l.buffers > 5*objects.buffers || 4*l.bytes > 5*objects.bytes || 4*l.groups > 5*objects.groups || l.pipelines > objects.pipelines {
		t.Errorf("%v became %v", objects, l)
	}
	if s := dev.Stats(); s.Buffers != 1 || s.BufferBytes != stats.BufferBytes {
		t.Errorf("%d buffers of %d bytes, not 1 of %d", s.Buffers, s.BufferBytes, stats.BufferBytes)
	}
	w.Close()
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
	if l := c.living(); l != (living{}) {
		t.Errorf("%v are left after the device was closed", l)
	}
}
