//go:build (js || wazero) && !noasm

package cpu

import "testing"

// TestChains runs the tests of programs again with a kernel generated for each that can have one.
func TestChains(t *testing.T) {
	defer func(after int64) { chainAfter = after }(chainAfter)
	chainAfter = 1
	before := len(chainHosts.byModule)
	t.Run("random", TestRandomPrograms)
	t.Run("in place", TestInPlace)
	t.Run("spreads", TestSpreads)
	if n := len(chainHosts.byModule) - before; n < 20 {
		t.Errorf("only %d kernels were generated", n)
	}
	for module, h := range chainHosts.byModule {
		if h == nil {
			t.Fatalf("a module of %d bytes was refused", len(module))
		}
	}
}
