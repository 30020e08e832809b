//go:build !nowebgpu && !js

package devicetest

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/internal/webgpu/wgpunative"
	"github.com/rayo-go/rayo/op"
)

// onGPU says that tests run on the first GPU, and not on software.
var onGPU = os.Getenv("RAYO_TEST_GPU") != ""

// webGPU returns what opens the software driver of that name, or a GPU.
func webGPU(t testing.TB, software string) Open {
	t.Helper()
	options := []device.Option{device.Require(device.WebGPU)}
	if !onGPU {
		testutil.Vulkan(t, software)
		options = append(options, device.WithName("software"))
	}
	return func(t testing.TB) *device.Device {
		t.Helper()
		d, err := device.Open(t.Context(), options...)
		if errors.Is(err, device.ErrNoDevice) && !onGPU {
			testutil.Missing(t, map[string]string{"lavapipe": "vulkan", "swiftshader": "swiftshader"}[software], err)
		}
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}

// TestWebGPU runs everything on Mesa's lavapipe, or with RAYO_TEST_GPU set on the
// first GPU. TestWebGPUSample is for the other pairs of library and
// driver.
func TestWebGPU(t *testing.T) {
	if !wgpunative.Linked {
		t.Skip("for wgpu-native, which is not part of this build")
	}
	seen := map[*op.Operation]int{}
	runAll(t, webGPU(t, "lavapipe"), func(c *Case) bool {
		// Of what one goroutine does a sample will do under the race detector.
		seen[c.Op]++
		return !testutil.Raced || seen[c.Op] <= 3 || c.Op == op.Gather
	})
}

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

// TestWebGPUMissing: without a driver the CPU is opened, soon, and says why.
func TestWebGPUMissing(t *testing.T) {
	for _, v := range testutil.VulkanEnv("/nonexistent") {
		key, value, _ := strings.Cut(v, "=")
		t.Setenv(key, value)
	}
	_, err := device.Open(t.Context(), device.Require(device.WebGPU))
	if !errors.Is(err, device.ErrNoDevice) {
		t.Skipf("there is a driver that is not Vulkan's: %v", err)
	}
	began := time.Now()
	dev, other := device.Open(t.Context())
	if other != nil {
		t.Fatal(other)
	}
	defer dev.Close()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("that took %v", took)
	}
	for _, r := range dev.Refused() {
		if r.Kind == device.WebGPU && !strings.Contains(err.Error(), r.Err.Error()) {
			t.Errorf("refused because %v, and alone because %v", r.Err, err)
		}
	}
	if k := dev.Info().Kind; k == device.WebGPU {
		t.Errorf("%v was opened", dev)
	}
}
