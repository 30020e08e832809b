//go:build !nowebgpu && !js && !race

package devicetest

import "testing"

// TestNetworksWebGPU is TestNetworks of lavapipe.
func TestNetworksWebGPU(t *testing.T) { networks(t, webGPU(t, "lavapipe"), true) }
