//go:build !js

package llm

import (
	"errors"
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// TestWebGPU computes models by the shaders of a software driver.
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

// onDevice computes models of each kind, in chunks and by single tokens, and in a cache of
// half floats.
func onDevice(t *testing.T, dev *device.Device) {
	for _, name := range []string{"llama", "llama-moe", "qwen3", "gemma3", "bert"} {
		t.Run(name, func(t *testing.T) { matches(t, dev, name, op.F32, max(goldens[name], 5e-5), []int{12, 1, 1, 16}) })
	}
	t.Run("halves", func(t *testing.T) { matches(t, dev, "llama", op.F16, 3e-3, []int{12, 1, 1, 16}) })
}
