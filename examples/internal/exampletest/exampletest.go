// Package exampletest holds functions that the tests of several examples share.
package exampletest

import (
	"context"
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/examples/internal/picture"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/wgsl"
)

// Open returns a device that is closed when the test ends.
func Open(t *testing.T, o ...device.Option) *device.Device {
	t.Helper()
	dev, err := device.Open(context.Background(), o...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

// WebGPU returns a device of WebGPU that software emulates. It skips the test if the software is not
// installed.
func WebGPU(t *testing.T) *device.Device {
	t.Helper()
	testutil.Vulkan(t, "lavapipe")
	return Open(t, device.Require(device.WebGPU), device.WithName("software"))
}

// Params holds a struct of Go to the parameters of a text in WGSL, which takes no
// device, and returns how many bytes they have there.
func Params(t *testing.T, text string, params any) int {
	t.Helper()
	b, err := wgsl.Source{Text: text}.Kernel().AppendParams(nil, params)
	if err != nil {
		t.Fatal(err)
	}
	return len(b)
}

// Picture fails the test if the file is not a picture of that size.
func Picture(t *testing.T, name string, width, height int) {
	t.Helper()
	img, err := picture.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	if size := img.Bounds().Size(); size.X != width || size.Y != height {
		t.Errorf("%s has %v pixels, not (%d,%d)", name, size, width, height)
	}
}
