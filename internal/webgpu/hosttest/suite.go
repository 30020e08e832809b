// Package hosttest tests a library as a host of package webgpu. It tests the results of each call,
// with and without the guard, from many goroutines, with mistakes in commands and texts, and without
// a driver. The test of a host is a few lines:
//
//	func TestHost(t *testing.T) { hosttest.Run(t, New, "lavapipe", "swiftshader") }
package hosttest

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/internal/webgpu"
)

var ctx = context.Background()

// Library returns the host to test, a new one each time.
type Library func() (webgpu.Host, error)

// Run tests a library with the software drivers "lavapipe" and "swiftshader", or with the driver of a
// "browser". It tests the calls with each driver, and the guard with the first one. If
// RAYO_TEST_HARDWARE is set, it uses the first hardware adapter instead.
func Run(t *testing.T, library Library, drivers ...string) {
	for i, driver := range drivers {
		t.Run(driver, func(t *testing.T) {
			t.Run("calls", func(t *testing.T) { calls(t, Open(t, library, driver)) })
			if driver != browser { // it is given no addresses, and is not heard while goroutines are busy
				t.Run("stacks", func(t *testing.T) { stacks(t, Open(t, library, driver)) })
			}
			t.Run("fma", func(t *testing.T) { fma(t, Open(t, library, driver)) })
			t.Run("renewed", func(t *testing.T) { renewed(t, Open(t, library, driver)) })
			if i > 0 {
				return
			}
			t.Run("no such adapter", func(t *testing.T) { outOfRange(t, library, driver) })
			for name, test := range map[string]func(*testing.T, *webgpu.Device){
				"trips": trips, "copies": copies, "concurrent": concurrent, "repeated": repeated, "stamps": stamps, "refused": refused,
			} {
				t.Run(name, func(t *testing.T) { test(t, Guarded(t, library, driver)) })
			}
		})
	}
}

// hardware is the environment variable with which the tests use the first hardware adapter.
const hardware = "RAYO_TEST_HARDWARE"

// browser is the driver of a host that is the WebGPU of a page.
const browser = "browser"

// need asks for a driver.
func need(t testing.TB, driver string) {
	t.Helper()
	if driver == browser {
		testutil.Need(t, browser)
		return
	}
	testutil.Vulkan(t, driver)
}

// Adapter returns the library and the adapter to test with.
func Adapter(t testing.TB, library Library, driver string) (h webgpu.Host, index int) {
	t.Helper()
	if os.Getenv(hardware) == "" {
		need(t, driver)
	}
	h, err := library()
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv(hardware) == "" && driver != browser {
		return h, 0
	}
	list, err := h.Adapters(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv(hardware) == "" {
		index = slices.IndexFunc(list, func(a webgpu.Adapter) bool { return a.Type == webgpu.Software })
		if index < 0 {
			t.Fatalf("no adapter is software: %+v", list)
		}
		return h, index
	}
	index = slices.IndexFunc(list, func(a webgpu.Adapter) bool { return a.Type != webgpu.Software })
	if index < 0 {
		t.Fatalf("%s is set, and all adapters are software", hardware)
	}
	return h, index
}

// Open opens the adapter until the end of the test.
func Open(t testing.TB, library Library, driver string) webgpu.HostDevice {
	t.Helper()
	h, index := Adapter(t, library, driver)
	d, err := h.Open(ctx, index)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// Guarded is Open with the guard.
func Guarded(t testing.TB, library Library, driver string) *webgpu.Device {
	t.Helper()
	h, index := Adapter(t, library, driver)
	d, err := webgpu.Open(ctx, h, index)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// Must returns a function that returns v, or fails the test.
func Must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
