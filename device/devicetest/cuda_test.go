//go:build (linux || windows) && !nocuda

package devicetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/driver/cuda"
	"github.com/rayo-go/rayo/internal/driver/cuda/emulated"
	"github.com/rayo-go/rayo/op"
)

func openCUDA(t testing.TB) *device.Device {
	d, err := device.Open(t.Context(), device.Require(device.CUDA))
	if errors.Is(err, device.ErrNoDevice) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestCUDA runs everything on a GPU, if there is one.
func TestCUDA(t *testing.T) { Run(t, openCUDA) }

// emulate has devices of CUDA be emulated until the end of the test.
func emulate(t *testing.T, checked bool) {
	cuda.Substitute = func(ordinal int) (driver.Device, error) {
		if ordinal != 0 {
			return nil, fmt.Errorf("cuda:%d: %w", ordinal, driver.ErrNoDevice)
		}
		return emulated.Open(checked)
	}
	t.Cleanup(func() { cuda.Substitute = nil })
}

// TestCUDAEmulated runs what is small by the kernels that GPUs run, in the
// emulator of PTX.
func TestCUDAEmulated(t *testing.T) {
	emulate(t, false)
	t.Run("operations", func(t *testing.T) {
		small := func(c *Case) bool { return c.elements() < 3000 && c.work() < 1e6 }
		types := op.DTypes()
		if short() {
			types = []op.DType{op.F32, op.I32}
		}
		operations(t, openCUDA, types, small)
	})
	t.Run("graphs", func(t *testing.T) { graphs(t, openCUDA) })
	t.Run("aliasing", func(t *testing.T) { aliasing(t, openCUDA) })
	t.Run("mistakes", func(t *testing.T) { mistakes(t, openCUDA) })
	t.Run("buffers", func(t *testing.T) { buffers(t, openCUDA) })
	t.Run("plans", func(t *testing.T) { plans(t, openCUDA) })
	t.Run("closing", func(t *testing.T) { closing(t, openCUDA) })
}
