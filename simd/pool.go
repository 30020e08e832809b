package simd

import "github.com/rayo-go/rayo/internal/workers"

// Pool is a fixed set of threads over which the larger kernels of this
// package split their work; a nil Pool is serial. One call uses it at a time:
// others compute on their own thread meanwhile. Close it when it is no longer
// needed.
type Pool = workers.Pool

// NewPool returns a pool of the given number of threads, the calling one
// included; with threads <= 0, as many as the process may use.
func NewPool(threads int) *Pool { return workers.New(threads) }
