package simd

import (
	"strings"
	"testing"
)

// TestVectorMap compares the kernels that VectorMap finds with those of Map: the same ones, or with
// SIMD128 all, so that a page has no use for the loops in plain Go.
func TestVectorMap(t *testing.T) {
	for _, name := range MapNames() {
		// Pages would grow by the kernels of integers with a scalar operand, so SIMD128 has none.
		integer := strings.HasPrefix(name, "i32.") || strings.HasPrefix(name, "u32.")
		scalar := strings.HasSuffix(name, ".vs") || strings.HasSuffix(name, ".sv")
		if Active() == SIMD128 && VectorMap(name) == nil && !(integer && scalar) {
			t.Errorf("SIMD128 has no %s", name)
		}
		if VectorMap(name) == nil && mapLevel(active, name) != nil {
			t.Errorf("VectorMap does not find %s", name)
		}
	}
}
