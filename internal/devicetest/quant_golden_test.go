package devicetest

import (
	"testing"

	"github.com/rayo-go/rayo/device"
)

// TestGoldenBlocks tests the CPU with its native kernels and with the portable kernels. Both must support every
// format.
func TestGoldenBlocks(t *testing.T) {
	t.Run("own", func(t *testing.T) {
		goldenBlocks(t, func(t testing.TB) *device.Device {
			d, err := device.Open(t.Context(), device.Require(device.CPU))
			if err != nil {
				t.Fatal(err)
			}
			return d
		})
	})
	t.Run("portable", func(t *testing.T) { goldenBlocks(t, openPortable) })
}
