//go:build (linux || windows) && !nocuda && !race

package devicetest

import (
	"testing"

	"github.com/rayo-go/rayo/internal/ptxkernels"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// TestCUDAEmulatedNumbers is the long part of TestCUDAEmulated, which runs in one goroutine. It is too slow for
// the race detector, which could find nothing in it.
func TestCUDAEmulatedNumbers(t *testing.T) {
	t.Parallel()
	emulate(t, 9, false)
	first, of := 3, 3
	if short() {
		first, of = 1, 10
	}
	small := func(c *Case) bool { return c.elements() < 3000 && c.work() < 1e6 }
	t.Run("operations", func(t *testing.T) {
		types, keep := op.DTypes(), small
		if short() {
			some := firstAndSome(testutil.Seed(t), first, of)
			types, keep = []op.DType{op.F32, op.I32}, func(c *Case) bool { return small(c) && some(c) }
		}
		operations(t, openCUDA, types, keep)
	})
	t.Run("graphs", func(t *testing.T) { graphs(t, openCUDA) })
	t.Run("older", func(t *testing.T) {
		emulate(t, 8, false)
		// Most kernels are the same.
		some, kept, all := firstAndSome(testutil.Seed(t), first, of), 0, 0
		native := func(c *Case) bool {
			if !ptxkernels.Has(c.Op) || !small(c) {
				return false
			}
			all++
			if !some(c) {
				return false
			}
			kept++
			return true
		}
		operations(t, openCUDA, []op.DType{op.F32, op.F16, op.BF16}, native)
		t.Logf("a sample of %d cases of %d", kept, all)
	})
}
