//go:build race

package cpu

// raced: sync.Pool then loses things on purpose, so that steady states allocate.
const raced = true
