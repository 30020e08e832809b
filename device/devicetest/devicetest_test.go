package devicetest_test

import (
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/device/devicetest"
)

// cpu opens the CPU with a number of threads.
func cpu(threads int) devicetest.Open {
	return func(t testing.TB) *device.Device {
		d, err := device.Open(t.Context(), device.Require(device.CPU), device.WithThreads(threads))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}

func TestCPU(t *testing.T) { devicetest.Run(t, cpu(0)) }

func TestCPUOneThread(t *testing.T) { devicetest.Run(t, cpu(1)) }

// TestCPUFourThreads has more threads than many machines have processors.
func TestCPUFourThreads(t *testing.T) { devicetest.Run(t, cpu(4)) }

func FuzzGraph(f *testing.F) { devicetest.FuzzGraph(f, cpu(2)) }
