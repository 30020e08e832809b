//go:build !wasm

package memory

import "math"

// largest is the size in bytes above which nothing is asked of the system.
// A size that is rounded to its class or to an alignment must not overflow.
const largest = min(math.MaxInt/2, 1<<46)
