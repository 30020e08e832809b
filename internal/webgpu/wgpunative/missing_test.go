//go:build !js

package wgpunative

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/internal/webgpu"
)

// TestNoDriver finds no driver at all, quickly and quietly.
func TestNoDriver(t *testing.T) {
	if !Linked {
		testutil.Missing(t, "cgo", errors.New("this is a build without cgo"))
	}
	stderr, child := testutil.Again(t, testutil.VulkanEnv("/nonexistent")...)
	if !child {
		if stderr != "" {
			t.Errorf("it wrote: %s", stderr)
		}
		return
	}
	start := time.Now()
	h, err := New()
	if err != nil {
		t.Fatal(err)
	}
	if l, err := h.Adapters(context.Background()); !errors.Is(err, webgpu.ErrNoAdapter) || len(l) != 0 {
		t.Errorf("%d adapters: %v", len(l), err)
	}
	if _, err := h.Open(context.Background(), 0); !errors.Is(err, webgpu.ErrNoAdapter) {
		t.Errorf("Open: %v", err)
	}
	if d := time.Since(start); d > time.Second {
		t.Errorf("it took %v", d)
	}
}
