package testutil

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Seed returns a seed that no run had before, or the one that the environment variable
// RAYO_SEED holds, and logs it.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if v := os.Getenv("RAYO_SEED"); v != "" {
		var err error
		if seed, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatalf("RAYO_SEED: %v", err)
		}
	}
	t.Logf("RAYO_SEED=%d", seed)
	return seed
}

// Rand returns a source of random numbers with a new [Seed]. A failed test says the seed, and
// the environment variable RAYO_SEED repeats it.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(Seed(t), 0))
}
