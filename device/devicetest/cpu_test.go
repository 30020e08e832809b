package devicetest

import (
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// cpu opens the CPU with a number of threads.
func cpu(threads int) Open {
	return func(t testing.TB) *device.Device {
		d, err := device.Open(t.Context(), device.Require(device.CPU), device.WithThreads(threads))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}

func TestCPU(t *testing.T) { Run(t, cpu(0)) }

// TestCPUThreads runs what depends on how work is split: by one thread, and by
// more than many machines have processors.
func TestCPUThreads(t *testing.T) {
	for name, open := range map[string]Open{"one": cpu(1), "five": cpu(5)} {
		t.Run(name, func(t *testing.T) {
			t.Run("operations", func(t *testing.T) { operations(t, open, op.F32) })
			t.Run("graphs", func(t *testing.T) { graphs(t, open) })
			t.Run("concurrency", func(t *testing.T) { concurrency(t, open) })
			t.Run("closing", func(t *testing.T) { closing(t, open) })
		})
	}
}

func FuzzGraph(f *testing.F) { FuzzGraphs(f, cpu(2)) }
