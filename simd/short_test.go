package simd

import (
	"math/rand/v2"
	"testing"
)

// sampled reports whether to run one of many cases: without -short it is true, and with -short it is true
// for a random one in n. Emulators of other processors are slow.
func sampled(n int) bool { return !testing.Short() || rand.IntN(n) == 0 }
