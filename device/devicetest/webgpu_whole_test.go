//go:build cgo && !nowebgpu && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package devicetest

import (
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// TestWebGPU runs everything by wgpu-native on Mesa's lavapipe, or with RAYO_TEST_GPU
// set on the first GPU. TestWebGPUSample is for the other pairs of library and driver.
func TestWebGPU(t *testing.T) {
	seen := map[*op.Operation]int{}
	runAll(t, webGPU(t, "lavapipe"), func(c *Case) bool {
		// Of what one goroutine does a sample will do under the race detector.
		seen[c.Op]++
		return !testutil.Raced || seen[c.Op] <= 3 || c.Op == op.Gather
	})
}
