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
		// Most kernels are the same: of each operation and type the first cases, and of
		// the others a third.
		type kind struct {
			o *op.Operation
			d op.DType
		}
		choose, seen, kept, all := newGenerator(freshSeed(t)), map[kind]int{}, 0, 0
		native := func(c *Case) bool {
			if !kernels.Has(c.Op) || !small(c) {
				return false
			}
			k := kind{c.Op, c.In[0].Type}
			all++
			if seen[k]++; seen[k] > 3 && choose.IntN(3) > 0 {
				return false
			}
			kept++
			return true
		}
		operations(t, openCUDA, []op.DType{op.F32, op.F16, op.BF16}, native)
		t.Logf("a sample of %d cases of %d", kept, all)
	})
}
