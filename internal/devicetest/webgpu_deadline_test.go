//go:build cgo && !nowebgpu && !js

package devicetest

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/wgsl"
)

// TestWebGPUDeadline checks that a call behind a slow kernel waits no longer than its
// context allows, for its turn and for the result.
func TestWebGPUDeadline(t *testing.T) {
	dev := start(t, webGPU(t, "lavapipe"))
	k, err := dev.Kernel(t.Context(), wgsl.Source{Text: `
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(1) fn main() { loop { x[0] = x[0] * 3u + 1u; if x[1] == 77u { break; } } }`})
	if err != nil {
		t.Fatal(err)
	}
	y := []float32{-1, 2}
	if err := dev.Relu(t.Context(), y, y); err != nil {
		t.Fatal(err)
	}
	long := k.RunAsync(t.Context(), kernel.Grid(1000*max(2, runtime.NumCPU())), nil, device.InOut([]uint32{1, 2})) // a second or more
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		z := []float32{-1, 2}
		err := dev.Relu(ctx, z, z)
		cancel()
		select {
		case <-long.Done():
			t.Fatal("the kernel did not take long enough for this test, or a call has waited for all of it")
		default:
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call with 50 ms returns %v", err)
		}
	}
	if err := long.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if err := dev.Relu(t.Context(), y, y); err != nil || y[0] != 0 {
		t.Errorf("%v, %v", y, err)
	}
}
