//go:build (linux || windows) && !nocuda && !race

package llm

import (
	"errors"
	"fmt"
	"testing"

	cu "github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/driver/cuda"
	"github.com/rayo-go/rayo/internal/driver/cuda/emulated"
	"github.com/rayo-go/rayo/internal/testutil"
)

// TestCUDAEmulated computes models with the kernels for NVIDIA GPUs in the PTX emulator.
func TestCUDAEmulated(t *testing.T) {
	cuda.Substitute = func(ordinal int) (driver.Device, error) {
		if ordinal != 0 {
			return nil, fmt.Errorf("cuda:%d: %w", ordinal, driver.ErrNoDevice)
		}
		return emulated.Open(cu.Capability{Major: 9}, false)
	}
	t.Cleanup(func() { cuda.Substitute = nil })
	dev, err := device.Open(t.Context(), device.Require(device.CUDA))
	if errors.Is(err, device.ErrNoDevice) && cuda.Substitute == nil {
		testutil.Missing(t, "cuda", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	onDevice(t, dev)
}

// TestCUDA computes models on a GPU.
func TestCUDA(t *testing.T) {
	testutil.Need(t, "cuda")
	dev, err := device.Open(t.Context(), device.Require(device.CUDA))
	if errors.Is(err, device.ErrNoDevice) && cuda.Substitute == nil {
		testutil.Missing(t, "cuda", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	onDevice(t, dev)
}
