//go:build cgo && !nowebgpu && (amd64 || arm64) && !android

package wgpunative

import (
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/hosttest"
)

// slack is the number of bytes by which memory may grow, because the fragmentation of allocators varies.
const slack = 16 << 20

// TestFlat requires that memory does not grow over many round trips.
func TestFlat(t *testing.T) {
	d := hosttest.Guarded(t, New, driver)
	n := 2500 // of four round trips
	if testing.Short() || testutil.Raced {
		n = 500
	}
	run := func(n int) {
		for i := range n {
			if err := hosttest.Relu(d, 1+i%3000); err != nil {
				t.Fatal(err)
			}
		}
	}
	run(n / 4)
	testutil.Flat(t, slack, func() { run(n) })
	if s := d.Stats(); s.Buffers != 0 || s.Compiled != 1 || s.IdleBytes > slack {
		t.Errorf("%+v", s)
	}
}

// TestFlatAhead requires that memory stays constant if prepared submissions are not used.
func TestFlatAhead(t *testing.T) {
	d := hosttest.Open(t, New, driver).(*device)
	x, y := hosttest.Must(d.NewBuffer(4096, webgpu.Storage))(t), hosttest.Must(d.NewBuffer(4096, webgpu.Storage))(t)
	run := func(n int) {
		for i := range n {
			turns(t, d, 2, webgpu.HostCommand{Do: webgpu.Copy, Src: x, Dst: y, Bytes: int64(4 + 4*i)})
		}
	}
	run(200)
	testutil.Flat(t, slack, func() { run(1000) })
	x.Release()
	y.Release()
}
