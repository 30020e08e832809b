package webgpu

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/ir"
	gpu "github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/fakehost"
	"github.com/rayo-go/rayo/wgsl"
)

const slowText = `@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(64) fn slow() { x[0] = 1.0; }`

// slowly opens a device whose compiler returns only when the test calls compile.
func slowly(t *testing.T) (d *device, p *ir.Program, host *fakehost.Host, compile func(error)) {
	t.Helper()
	p, err := wgsl.Source{Text: slowText}.Kernel().Program()
	if err != nil {
		t.Fatal(err)
	}
	results := make(chan error)
	h := &fakehost.Host{Kernels: map[string]fakehost.Kernel{"slow": func([3]uint32, [][]byte) {}}, Fail: func(call string) error {
		if call == "NewPipeline" {
			return <-results
		}
		return nil
	}}
	g, err := gpu.Open(t.Context(), h, 0)
	if err != nil {
		t.Fatal(err)
	}
	return newDevice(g, "fake", 0), p, h, func(err error) { results <- err }
}

// TestCompileEndsWithContext checks that Compile returns when its context ends, even if the driver
// continues to compile.
func TestCompileEndsWithContext(t *testing.T) {
	d, p, h, compile := slowly(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := d.Compile(ctx, p); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v, after %v", err, time.Since(start))
	}
	// Later and concurrent calls wait for the same compilation.
	done := make(chan error, 4)
	for range cap(done) {
		go func() { done <- d.Compile(t.Context(), p) }()
	}
	compile(nil)
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := d.gpu.Stats().Compiled; n != 1 {
		t.Errorf("compiled %d times", n)
	}
	if n := len(d.kernels.byKey); n != 1 || d.kernels.idle.Len() != 1 {
		t.Errorf("%d kernels are kept, %d of them idle", n, d.kernels.idle.Len())
	}
	closed(t, d, h)
}

// TestCompileFailsForAll checks that all waiting callers get the error of a compilation, and that a
// later call compiles again.
func TestCompileFailsForAll(t *testing.T) {
	d, p, h, compile := slowly(t)
	done := make(chan error, 4)
	for range cap(done) {
		go func() { done <- d.Compile(t.Context(), p) }()
	}
	for uses := 0; uses < 1+cap(done); { // wait until all callers and the compiler use the kernel
		time.Sleep(time.Millisecond)
		d.kernels.mu.Lock()
		for _, k := range d.kernels.byKey {
			uses = k.users
		}
		d.kernels.mu.Unlock()
	}
	full := fmt.Errorf("%w: for once", gpu.ErrOutOfMemory)
	compile(full)
	for range cap(done) {
		if err := <-done; !errors.Is(err, driver.ErrOutOfMemory) {
			t.Error(err)
		}
	}
	go compile(nil)
	if err := d.Compile(t.Context(), p); err != nil {
		t.Error(err)
	}
	closed(t, d, h)
}

// TestCloseWhileCompiling closes a device during a compilation that no caller waits for: the
// pipeline must be released when it is complete.
func TestCloseWhileCompiling(t *testing.T) {
	d, p, h, compile := slowly(t)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if err := d.Compile(ctx, p); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	time.AfterFunc(20*time.Millisecond, func() { compile(nil) })
	closed(t, d, h)
	if err := d.Compile(t.Context(), p); !errors.Is(err, driver.ErrClosed) {
		t.Error(err)
	}
}

// closed closes the device and checks that no object is left.
func closed(t *testing.T, d *device, h *fakehost.Host) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	for _, f := range h.Devices() {
		if _, _, others := f.Alive(); others != 0 || len(f.Violations()) != 0 {
			t.Errorf("%d pipelines are left, %v", others, f.Violations())
		}
	}
}
