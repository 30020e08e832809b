package testutil

import "testing"

// TestSeed: seeds differ, except with RAYO_SEED.
func TestSeed(t *testing.T) {
	t.Setenv("RAYO_SEED", "")
	if a, b := Seed(t), Seed(t); a == b {
		t.Error("two equal seeds")
	}
	t.Setenv("RAYO_SEED", "18446744073709551615")
	if s := Seed(t); s != 1<<64-1 {
		t.Errorf("RAYO_SEED gives %d", s)
	}
	if a, b := Rand(t).Uint64(), Rand(t).Uint64(); a != b {
		t.Error("RAYO_SEED does not repeat the numbers")
	}
}
