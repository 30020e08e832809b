//go:build (linux || windows) && !nocuda && !race

package devicetest

import (
	"testing"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx/kernels"
)

// TestCUDAEmulatedNumbers is the part of TestCUDAEmulated that one goroutine does at
// length: too slow under the race detector, and nothing to it.
func TestCUDAEmulatedNumbers(t *testing.T) {
	emulate(t, 9, false)
	small := func(c *Case) bool { return c.elements() < 3000 && c.work() < 1e6 }
	t.Run("operations", func(t *testing.T) {
		types := op.DTypes()
		if short() {
			types = []op.DType{op.F32, op.I32}
		}
		operations(t, openCUDA, types, small)
	})
	t.Run("graphs", func(t *testing.T) { graphs(t, openCUDA) })
	t.Run("older", func(t *testing.T) {
		emulate(t, 8, false)
		native := func(c *Case) bool { return kernels.Has(c.Op) && small(c) }
		operations(t, openCUDA, []op.DType{op.F32, op.F16, op.BF16}, native)
	})
}
