//go:build !nowebgpu && !js && !race

package llm

import (
	"errors"
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
)

// TestWebGPU computes models with the shaders of a software driver.
func TestWebGPU(t *testing.T) {
	options := []device.Option{device.Require(device.WebGPU)}
	if !testutil.OnGPU() {
		testutil.Vulkan(t, "lavapipe")
		options = append(options, device.WithName("software"))
	}
	dev, err := device.Open(t.Context(), options...)
	if errors.Is(err, device.ErrNoDevice) && !testutil.OnGPU() {
		testutil.Missing(t, "vulkan", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	onDevice(t, dev)
}
