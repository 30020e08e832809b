//go:build !js

package hosttest

import (
	"errors"
	"os"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/internal/webgpu"
)

// NoDriver checks that a library without a driver has no adapters and prints nothing.
func NoDriver(t *testing.T, library Library) {
	stderr, child := testutil.Again(t, testutil.VulkanEnv("/nonexistent")...)
	if !child {
		if stderr != "" {
			t.Errorf("it wrote: %s", stderr)
		}
		return
	}
	h, err := library()
	if err != nil {
		t.Fatal(err)
	}
	if l, err := h.Adapters(ctx); !errors.Is(err, webgpu.ErrNoAdapter) || len(l) != 0 {
		t.Errorf("%d adapters: %v", len(l), err)
	}
	if _, err := h.Open(ctx, 0); !errors.Is(err, webgpu.ErrNoAdapter) {
		t.Errorf("Open: %v", err)
	}
}

// Quiet checks that a computation without a screen writes nothing to the standard error and does not
// change the environment.
func Quiet(t *testing.T, library Library, driver string) {
	testutil.Vulkan(t, driver)
	without := []string{"env", "-u", "XDG_RUNTIME_DIR", "-u", "NODEVICE_SELECT"}
	stderr, child := testutil.AgainUnder(t, without)
	if !child {
		if stderr != "" {
			t.Errorf("it wrote: %s", stderr)
		}
		return
	}
	before := os.Environ()
	if err := Relu(Guarded(t, library, driver), 1000); err != nil {
		t.Error(err)
	}
	after := map[string]bool{}
	for _, v := range os.Environ() {
		after[v] = true
	}
	for _, v := range before {
		if !after[v] {
			t.Errorf("%s is gone from the environment", v)
		}
		delete(after, v)
	}
	for v := range after {
		t.Errorf("%s has come to the environment", v)
	}
}
