package ptxkernels

import "sync"

// kernelCache caches a kernel for each specification.
type kernelCache[S comparable] struct {
	mu  sync.Mutex
	all map[S]*Kernel
}

// maxKernels bounds the number of cached kernels, because users' programs have any number of epilogues. When
// it is reached, the cache is cleared.
const maxKernels = 4096

// of returns the kernel for s; build makes it if it does not exist yet.
func (c *kernelCache[S]) of(s S, build func() *Kernel) *Kernel {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.all[s]
	if k == nil {
		if c.all == nil || len(c.all) >= maxKernels {
			c.all = map[S]*Kernel{}
		}
		k = build()
		c.all[s] = k
	}
	return k
}
