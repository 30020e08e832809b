//go:build cgo && !nowebgpu && (amd64 || arm64) && !android

package wgpunative

import (
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
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
