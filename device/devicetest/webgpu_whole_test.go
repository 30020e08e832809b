//go:build cgo && !nowebgpu && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package devicetest

import (
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/op"
)

// TestWebGPU runs everything by wgpu-native on Mesa's lavapipe, or with RAYO_TEST_GPU
// set on the first GPU. TestWebGPUSample is for the other pairs of library and driver.
func TestWebGPU(t *testing.T) {
	some := sampled()
	devices := 1
	if !onGPU {
		devices = 2 // compiling takes lavapipe most of the time, on one thread for each
	}
	runAll(t, webGPU(t, "lavapipe"), devices, func(c *Case) bool {
		// Half floats change what a kernel reads and writes; those below take lavapipe
		// seconds to compile, and so do quantised products of any type, five minutes
		// in all where its cache is empty: every run has some.
		switch c.Op {
		case op.MatMul, op.Attention, op.Conv2D:
			if !onGPU && c.In[0].Type == op.F16 && rand.IntN(4) > 0 {
				return false
			}
		case op.MatMulQ:
			if !onGPU && rand.IntN(4) > 0 {
				return false
			}
		}
		return some(c)
	})
}
