package cpu

import (
	"sync/atomic"

	"github.com/rayo-go/rayo/internal/driver"
)

// A chain computes a block of a program with one kernel that is generated for the program, instead
// of one call for each instruction. It is generated when the program has computed enough elements
// for the generation to pay off.
type chain struct {
	generate func() chainKernel
	seen     atomic.Int64 // number of computed elements, up to chainAfter
	kernel   atomic.Pointer[chainKernel]
}

// chainKernel computes n elements. table is the table of the lane.
type chainKernel func(table []*float32, n int)

// chainAfter is the number of elements from which on a kernel is generated. Tests lower it.
var chainAfter int64 = 1 << 24

// newChain returns the chain of the program in b, or nil if chains do not support it. loaded has
// the values of the operands. The variable newChain is nil if no generator is linked.
var newChain func(b *builder, f *driver.Fused, out []driver.Operand, loaded []int) *chain

// next returns the kernel for n further elements, or nil if calls must compute them.
func (c *chain) next(n int) chainKernel {
	if c == nil {
		return nil
	}
	if k := c.kernel.Load(); k != nil {
		return *k
	}
	if c.seen.Load() >= chainAfter {
		return nil // it is being generated, or cannot be
	}
	if after := c.seen.Add(int64(n)); after < chainAfter || after-int64(n) >= chainAfter {
		return nil
	}
	k := c.generate()
	if k != nil {
		c.kernel.Store(&k)
	}
	return k
}
