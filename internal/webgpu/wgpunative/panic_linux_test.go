//go:build cgo && !nowebgpu && (amd64 || arm64) && !android

package wgpunative

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/hosttest"
)

// TestPanic submits memory that is still mapped, for which the library ends the process, as it does if
// a device is lost. On Linux the call returns an error instead, also repeatedly on one thread, and
// other devices continue to work.
func TestPanic(t *testing.T) {
	testutil.Vulkan(t, driver)
	if stderr, child := testutil.Again(t); !child {
		if stderr != "" {
			t.Errorf("it wrote: %s", stderr)
		}
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	other := hosttest.Guarded(t, New, driver)
	for range 3 {
		d := hosttest.Open(t, New, driver)
		up, err := d.NewBuffer(64, webgpu.Upload)
		if err != nil {
			t.Fatal(err)
		}
		x, err := d.NewBuffer(64, webgpu.Storage)
		if err != nil {
			t.Fatal(err)
		}
		list := []webgpu.HostCommand{{Do: webgpu.Copy, Src: up, Dst: x, Bytes: 64}}
		if _, err = d.Submit(list, nil); !errors.Is(err, webgpu.ErrDeviceLost) || !strings.Contains(err.Error(), "still mapped") {
			t.Errorf("Submit: %v", err)
		}
		select {
		case <-d.Lost():
		default:
			t.Error("the device is not lost")
		}
		up.Unmap()
		if _, err = d.Submit(list, nil); !errors.Is(err, webgpu.ErrDeviceLost) {
			t.Errorf("Submit to a lost device: %v", err)
		}
		if _, err = d.Poll(); !errors.Is(err, webgpu.ErrDeviceLost) {
			t.Errorf("Poll of a lost device: %v", err)
		}
		up.Release()
		x.Release()
		if err := hosttest.Relu(other, 1000); err != nil {
			t.Errorf("another device: %v", err)
		}
	}
	if err := hosttest.Relu(hosttest.Guarded(t, New, driver), 1000); err != nil {
		t.Errorf("a new device: %v", err)
	}
}
