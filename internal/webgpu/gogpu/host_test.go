//go:build !nowebgpu && !goffi_static && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package gogpu

import (
	"testing"

	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/hosttest"
)

func TestHost(t *testing.T) { hosttest.Run(t, New, "lavapipe", "swiftshader") }

func TestNoDriver(t *testing.T) { hosttest.NoDriver(t, New) }

func TestQuiet(t *testing.T) { hosttest.Quiet(t, New, "lavapipe") }

func BenchmarkTrip(b *testing.B) { hosttest.BenchmarkTrips(b, New, "lavapipe") }

// drivers runs a test with each software driver.
func drivers(t *testing.T, f func(t *testing.T, d webgpu.HostDevice)) {
	for _, name := range []string{"lavapipe", "swiftshader"} {
		t.Run(name, func(t *testing.T) { f(t, hosttest.Open(t, New, name)) })
	}
}

// TestReleaseTwice checks that a second release does nothing.
func TestReleaseTwice(t *testing.T) {
	d := hosttest.Open(t, New, "lavapipe")
	for u := webgpu.Storage; u <= webgpu.Readback; u++ {
		b := hosttest.Must(d.NewBuffer(4000, u))(t)
		b.Release()
		b.Release()
	}
	if err := hosttest.Trip(d, 1000, func(f func()) { f() }); err != nil {
		t.Error(err)
	}
}
