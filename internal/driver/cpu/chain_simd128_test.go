//go:build (js || wazero) && !noasm

package cpu

import "testing"

// Pages link the generator with package batch.
func init() { linkChains() }

// TestChains runs the tests of programs again with chains enabled from the first element on. A
// short test runs random programs until one of them has a generated kernel; about one in ten can
// have one.
func TestChains(t *testing.T) {
	defer func(after int64, codes int) { chainAfter, chainCodes = after, codes }(chainAfter, chainCodes)
	chainAfter, chainCodes = 1, 1000
	before, n := len(chainHosts.byModule), 0
	for range 50 {
		t.Run("random", TestRandomPrograms)
		t.Run("in place", TestInPlace)
		if n = len(chainHosts.byModule) - before; n > 0 || t.Failed() {
			break
		}
	}
	if t.Logf("%d kernels were generated", n); n == 0 {
		t.Error("no kernel was generated")
	}
	for module, h := range chainHosts.byModule {
		if h == nil {
			t.Fatalf("a module of %d bytes was refused", len(module))
		}
	}
}
