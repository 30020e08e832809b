//go:build !nowebgpu && !js && !race

package devicetest

import (
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/internal/webgpu/wgpunative"
	"github.com/rayo-go/rayo/op"
)

// TestWebGPUSample runs a few shapes of each operation and element type, plans, and many goroutines; short runs take a
// third of the operations, chosen at random. It is for the
// pairs of library and driver for which TestWebGPU does not run: builds with cgo use wgpu-native, and builds without
// cgo use the library in Go. Drivers are slow, so under the race detector TestWebGPU is the sample.
func TestWebGPUSample(t *testing.T) {
	drivers := []string{"lavapipe", "swiftshader"}
	if wgpunative.Linked {
		drivers = drivers[1:]
	}
	for _, name := range drivers {
		t.Run(name, func(t *testing.T) { pair(t, webGPU(t, name)) })
	}
}

func pair(t *testing.T, open Open) {
	t.Run("operations", func(t *testing.T) {
		type kind struct {
			o *op.Operation
			d op.DType
		}
		seen, of, choose := map[kind]int{}, map[*op.Operation]bool{}, testutil.Rand(t)
		left := map[*op.Operation]bool{}
		for _, o := range op.Catalogue() {
			left[o] = short() && choose.IntN(3) > 0 // SwiftShader compiles some kernels for seconds
		}
		operations(t, open, op.DTypes(), func(c *Case) bool {
			if n := c.elements(); n < 2 || n > 5000 || left[c.Op] {
				return false
			}
			k, most := kind{c.Op, c.In[0].Type}, 2
			if short() {
				most = 1
			}
			if c.Op == op.Gather {
				most = 12 // the first have no one-shot method
			}
			if _, met := seen[k]; short() && !met && of[c.Op] && choose.IntN(8) > 0 {
				seen[k] = most // short runs take the first type and an eighth of the others
			}
			if seen[k] == most {
				return false
			}
			seen[k]++
			of[c.Op] = true
			return true
		})
	})
	t.Run("plans", func(t *testing.T) { plans(t, open) })
	t.Run("concurrency", func(t *testing.T) { concurrency(t, open) })
}
