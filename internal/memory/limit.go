//go:build !wasm

package memory

import "math"

// largest is the size in bytes above which nothing is asked of the system.
// Sums of a size and an alignment must not overflow.
const largest = min(math.MaxInt, 1<<46) - 2*Huge
