//go:build !race

// Under the race detector, pools drop objects at random.

package device_test

import (
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// This test checks that calls do not allocate.
func TestOneShotAllocations(t *testing.T) {
	dev := pinned(t)
	f, ids := oneShotArrays()
	for _, c := range oneShot {
		if n := testutil.Allocations(100, func() {
			if err := c.run(ctx, dev, &f, ids); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s: %d allocations for each call, want 0", c.name, n)
		}
	}
}
