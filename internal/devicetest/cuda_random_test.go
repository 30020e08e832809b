//go:build (linux || windows) && !nocuda

package devicetest

import "testing"

// TestRandomCUDAEmulated is TestRandom of a GPU in the emulator.
func TestRandomCUDAEmulated(t *testing.T) {
	emulate(t, 9, false)
	random(t, openCUDA)
}
