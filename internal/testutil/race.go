//go:build race

package testutil

// Raced reports whether the race detector watches this program. Under it a
// sync.Pool forgets at random, so that steady states allocate, and programs are
// several times slower.
const Raced = true
