//go:build (js || wazero) && !noasm

package simd

import "testing"

// TestMapBlocks tests that a kernel computes all blocks of arrays that exceed one block, beside plain Go.
func TestMapBlocks(t *testing.T) {
	const n = 3*8192 + 5
	x, y := make([]float32, n), make([]float32, n)
	for i := range x {
		x[i], y[i] = normal(2*i), normal(2*i+1)
	}
	for name, want := range map[string]func(i int, p []float32) float32{
		"relu": func(i int, _ []float32) float32 { return max(x[i], 0) },
		"add":  func(i int, _ []float32) float32 { return x[i] + y[i] },
		"clip": func(i int, p []float32) float32 { return min(max(x[i], p[0]), p[1]) },
	} {
		f := MapAt(SIMD128, name)
		if f == nil {
			t.Fatalf("no kernel for %s", name)
		}
		p := []float32{-0.5, 0.25}
		dst := make([]float32, n+1)
		dst[n] = 7
		f(&dst[0], &x[0], &y[0], nil, n, &p[0])
		for i := range n {
			if dst[i] != want(i, p) {
				t.Fatalf("%s: element %d is %v: expected %v", name, i, dst[i], want(i, p))
			}
		}
		if dst[n] != 7 {
			t.Errorf("%s: the element after the result was written", name)
		}
	}
}
