package simd

import "github.com/rayo-go/rayo/internal/workers"

// Pool is a fixed set of threads that share the work of larger calls of this package. A
// nil Pool means only the calling thread. One call at a time uses the pool; other calls
// meanwhile compute on their own thread. Close it when it is no longer needed.
type Pool = workers.Pool

// NewPool returns a pool of the given number of threads, which includes the calling
// thread. If threads is 0 or less, it has as many threads as the process may use.
func NewPool(threads int) *Pool { return workers.New(threads) }
