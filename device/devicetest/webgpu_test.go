//go:build !nowebgpu && !js

package devicetest

import (
	"errors"
	"os"
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
)

// webGPU returns what opens the adapter that RAYO_DEVICE names, as it does in a run
// on a GPU, and else the software driver of that name.
func webGPU(t testing.TB, software string) Open {
	t.Helper()
	options := []device.Option{device.Require(device.WebGPU)}
	if os.Getenv("RAYO_TEST_GPU") == "" {
		testutil.Vulkan(t, software)
		options = append(options, device.WithName("software"))
	}
	return func(t testing.TB) *device.Device {
		t.Helper()
		d, err := device.Open(t.Context(), options...)
		if errors.Is(err, device.ErrNoDevice) && os.Getenv("RAYO_TEST_GPU") == "" {
			testutil.Missing(t, map[string]string{"lavapipe": "vulkan", "swiftshader": "swiftshader"}[software], err)
		}
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}

// TestWebGPU runs everything on Mesa's lavapipe, or with RAYO_TEST_GPU set on the
// first GPU.
func TestWebGPU(t *testing.T) { Run(t, webGPU(t, "lavapipe")) }

// BenchmarkWebGPU measures round trips.
func BenchmarkWebGPU(b *testing.B) {
	dev := webGPU(b, "lavapipe")(b)
	defer dev.Close()
	roundTrips(b, dev)
}

// BenchmarkWebGPUResident measures operations over arrays that stay on the GPU.
func BenchmarkWebGPUResident(b *testing.B) {
	dev := webGPU(b, "lavapipe")(b)
	defer dev.Close()
	onTheDevice(b, dev)
}
