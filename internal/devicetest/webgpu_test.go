//go:build !nowebgpu && !js

package devicetest

import (
	"errors"
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/driver/webgpu"
	"github.com/rayo-go/rayo/internal/testutil"
)

func init() { webgpu.Miscomputes = endsLoops }

// onGPU reports whether tests run on the first GPU instead of software.
var onGPU = testutil.OnGPU()

// webGPU returns a function that opens the software driver of the given name, or a GPU.
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

// BenchmarkWebGPU measures round trips.
func BenchmarkWebGPU(b *testing.B) {
	dev := webGPU(b, "lavapipe")(b)
	defer dev.Close()
	roundTrips(b, dev)
}

// BenchmarkWebGPUArrays is BenchmarkCUDAArrays for WebGPU.
func BenchmarkWebGPUArrays(b *testing.B) {
	dev := webGPU(b, "lavapipe")(b)
	defer dev.Close()
	onArrays(b, dev)
}

// BenchmarkWebGPUPermutes measures permuted copies with each variant of their kernels.
func BenchmarkWebGPUPermutes(b *testing.B) { timePermutes(b, webGPU(b, "lavapipe")) }

// BenchmarkWebGPUResident measures operations over arrays that stay on the GPU.
func BenchmarkWebGPUResident(b *testing.B) {
	dev := webGPU(b, "lavapipe")(b)
	defer dev.Close()
	printGoals(vulkanGoals, onTheDevice(b, dev))
}

// BenchmarkWebGPUFormats measures products with quantised weights of every format.
func BenchmarkWebGPUFormats(b *testing.B) {
	dev := webGPU(b, "lavapipe")(b)
	defer dev.Close()
	timeFormats(b, dev)
}

// BenchmarkWebGPULengths measures operations on rows and arrays of any lengths.
func BenchmarkWebGPULengths(b *testing.B) {
	dev := webGPU(b, "lavapipe")(b)
	defer dev.Close()
	anyLengths(b, dev)
}
