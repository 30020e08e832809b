//go:build !nowebgpu && !js && !race

package devicetest

import "testing"

// TestArraysWebGPU is TestArrays of lavapipe.
func TestArraysWebGPU(t *testing.T) { arrays(t, webGPU(t, "lavapipe")) }

// TestTransformerCopiesWebGPU is TestTransformerCopies of lavapipe.
func TestTransformerCopiesWebGPU(t *testing.T) { layersOn(t, webGPU(t, "lavapipe")) }

// TestViewsInPlaceWebGPU is TestViewsInPlace of lavapipe.
func TestViewsInPlaceWebGPU(t *testing.T) { placesOn(t, webGPU(t, "lavapipe")) }

// TestGoldenBlocksWebGPU is TestGoldenBlocks of lavapipe.
func TestGoldenBlocksWebGPU(t *testing.T) { goldenBlocks(t, webGPU(t, "lavapipe")) }
