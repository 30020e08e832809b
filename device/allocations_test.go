//go:build !race

// The race detector has pools forget at random.

package device_test

import (
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// Calls leave nothing to the garbage collector.
func TestOneShotAllocations(t *testing.T) {
	dev := pinned(t)
	f, ids := oneShotArrays()
	for _, c := range oneShot {
		if n := testutil.Allocations(100, func() {
			if err := c.run(ctx, dev, &f, ids); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s: %d allocations a call", c.name, n)
		}
	}
}
