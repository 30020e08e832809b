//go:build cgo && !nowebgpu && (amd64 || arm64) && !android

package wgpunative

import (
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/hosttest"
)

// TestFlat has memory stay where it is over many round trips.
func TestFlat(t *testing.T) {
	d := hosttest.Guarded(t, New, driver)
	n := 2500 // of four round trips
	if testing.Short() || testutil.Raced {
		n = 500
	}
	before := 0
	for i := range n {
		if i == n/4 {
			before = testutil.Resident(t)
		}
		if err := hosttest.Relu(d, 1+i%3000); err != nil {
			t.Fatal(err)
		}
	}
	if after := testutil.Resident(t); after > before+16<<20 {
		t.Errorf("%d bytes became %d", before, after)
	}
	if s := d.Stats(); s.Buffers != 0 || s.Compiled != 1 || s.IdleBytes > 16<<20 {
		t.Errorf("%+v", s)
	}
}

// TestFlatAhead has memory stay where it is when nothing comes of what was ready.
func TestFlatAhead(t *testing.T) {
	d := hosttest.Open(t, New, driver).(*device)
	x, y := hosttest.Must(d.NewBuffer(4096, webgpu.Storage))(t), hosttest.Must(d.NewBuffer(4096, webgpu.Storage))(t)
	before := 0
	for i := range 1000 {
		if i == 200 {
			before = testutil.Resident(t)
		}
		turns(t, d, 2, webgpu.HostCommand{Do: webgpu.Copy, Src: x, Dst: y, Bytes: int64(4 + 4*i)})
	}
	if after := testutil.Resident(t); after > before+16<<20 {
		t.Errorf("%d bytes became %d", before, after)
	}
	x.Release()
	y.Release()
}
