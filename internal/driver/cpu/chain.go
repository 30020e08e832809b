package cpu

import (
	"sync/atomic"

	"github.com/rayo-go/rayo/internal/driver"
)

// A chain computes a block of a program by one kernel, generated for the program, in place of one
// call for each instruction. It is generated when the program has computed enough elements to
// make up for the time that this takes.
type chain struct {
	generate func() chainKernel
	seen     atomic.Int64 // elements, up to chainAfter
	kernel   atomic.Pointer[chainKernel]
}

// chainKernel computes n elements. The table is that of the lane.
type chainKernel func(table []*float32, n int)

// chainAfter is the number of elements from which on a kernel is generated. Tests lower it.
var chainAfter int64 = 1 << 24

// newChain returns the chain of a program that has been built, whose operands were loaded as these
// values, or nil if there can be none. It is nil where no generator is linked.
var newChain func(b *builder, f *driver.Fused, out []driver.Operand, loaded []int) *chain

// next returns the kernel for n elements more, or nil if calls compute them.
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
