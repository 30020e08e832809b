//go:build (linux || windows) && !nocuda

package devicetest

import "testing"

// TestDecodeCUDA decodes some tokens with one plan in the emulator, and checks that it records one graph.
func TestDecodeCUDA(t *testing.T) {
	emulate(t, 9, false)
	dev := openCUDA(t)
	defer dev.Close()
	tokens := 12
	if short() {
		tokens = 5
	}
	decode(t, dev, tokens, 1)
}

// TestTransformerCopiesCUDA is TestTransformerCopies in the emulator.
func TestTransformerCopiesCUDA(t *testing.T) {
	emulate(t, 9, false)
	layersOn(t, openCUDA)
}

// TestViewsInPlaceCUDA is TestViewsInPlace in the emulator.
func TestViewsInPlaceCUDA(t *testing.T) {
	emulate(t, 9, false)
	placesOn(t, openCUDA)
}
