//go:build (linux || windows) && !nocuda

package devicetest

import "testing"

// TestNetworksCUDAEmulated is TestNetworks of a GPU in the emulator.
func TestNetworksCUDAEmulated(t *testing.T) {
	emulate(t, 9, false)
	networks(t, openCUDA, true)
}
