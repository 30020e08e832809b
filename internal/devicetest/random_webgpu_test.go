//go:build !nowebgpu && !js && !race

package devicetest

import "testing"

// TestRandomWebGPU is TestRandom of lavapipe.
func TestRandomWebGPU(t *testing.T) { random(t, webGPU(t, "lavapipe")) }
