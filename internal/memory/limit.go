//go:build !wasm

package memory

import "math"

// largest is the largest size in bytes of an allocation. Rounding it to a size class
// or an alignment does not overflow.
const largest = min(math.MaxInt/2, 1<<46)
