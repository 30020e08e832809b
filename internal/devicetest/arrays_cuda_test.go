//go:build (linux || windows) && !nocuda

package devicetest

import "testing"

// TestArraysCUDAEmulated is TestArrays of a GPU in the emulator.
func TestArraysCUDAEmulated(t *testing.T) {
	emulate(t, 9, false)
	arrays(t, openCUDA)
}

// TestGoldenBlocksCUDAEmulated is TestGoldenBlocks of a GPU in the emulator.
func TestGoldenBlocksCUDAEmulated(t *testing.T) {
	emulate(t, 9, false)
	goldenBlocks(t, openCUDA)
}
