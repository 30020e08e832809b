package simd

import "testing"

// TestVectorMap compares the kernels that VectorMap finds with those of Map: the same ones, or with
// SIMD128 all, so that a page has no use for the loops in plain Go.
func TestVectorMap(t *testing.T) {
	for _, name := range MapNames() {
		if Active() == SIMD128 && VectorMap(name) == nil {
			t.Errorf("SIMD128 has no %s", name)
		}
		if VectorMap(name) == nil && mapLevel(active, name) != nil {
			t.Errorf("VectorMap does not find %s", name)
		}
	}
}
