//go:build !nowebgpu && !js && !race

package devicetest

import "testing"

// TestArraysWebGPU is TestArrays of lavapipe.
func TestArraysWebGPU(t *testing.T) { arrays(t, webGPU(t, "lavapipe")) }
