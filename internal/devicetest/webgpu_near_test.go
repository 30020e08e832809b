//go:build cgo && !nowebgpu && !js

package devicetest

import (
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	gpu "github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/wgsl"
)

// TestWebGPUNear checks that a device measures the error of the short implementations of functions once, before the
// first kernel that needs one. A device that computes them wrongly, as Mesa's software does, uses the long
// implementations.
func TestWebGPUNear(t *testing.T) {
	var measured, short atomic.Int32
	wear(t, &mask{
		change: func(a *gpu.Adapter) { a.Type, a.Target.Unfused = gpu.Discrete, false },
		text: func(s string) string {
			switch {
			case strings.Contains(s, "fn near("):
				measured.Add(1)
			case strings.Contains(s, "saturate("):
				short.Add(1)
			}
			return s
		},
	})
	dev, err := device.Open(t.Context(), device.Require(device.WebGPU))
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	x := []float32{-3, -0.5, 0, 0.25, 80}
	y := make([]float32, len(x))
	for range 2 {
		if err := dev.Exp(t.Context(), y, x); err != nil {
			t.Fatal(err)
		}
		if err := dev.Sigmoid(t.Context(), y, x); err != nil {
			t.Fatal(err)
		}
	}
	if m, s := measured.Load(), short.Load(); m != 1 || s != 0 {
		t.Errorf("measured %d times, %d kernels with short functions", m, s)
	}
}

// TestWebGPUCopies copies arrays at all alignments that are large enough for a copy by a kernel.
func TestWebGPUCopies(t *testing.T) {
	var kernels atomic.Int32
	wear(t, &mask{
		change: func(a *gpu.Adapter) { a.Type, a.Target.Unfused = gpu.Discrete, true },
		text: func(s string) string {
			if strings.Contains(s, "fn map(") && strings.Contains(s, "u32>") {
				kernels.Add(1)
			}
			return s
		},
	})
	ctx := t.Context()
	dev, err := device.Open(ctx, device.Require(device.WebGPU))
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	const n = 3<<19 + 5
	x := make([]float32, n)
	for i := range x {
		x[i] = rand.Float32() - 0.5
	}
	from, err := device.Upload(ctx, dev, x)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := device.Upload(ctx, dev, make([]float32, n+100))
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	for _, at := range []int{0, 64, 3} {
		r := batch.New(dev)
		r.Store(to, at, r.Use(from))
		if err := r.Execute(ctx); err != nil {
			t.Fatal(err)
		}
		got := make([]float32, n+100)
		if err := device.Read(ctx, got, to); err != nil {
			t.Fatal(err)
		}
		for i, v := range x {
			if got[at+i] != v {
				t.Fatalf("at %d: element %d is %v, not %v", at, i, got[at+i], v)
			}
		}
		for i, v := range got[at+n:] {
			if v != 0 && at == 64 {
				t.Fatalf("at %d: element %d behind the end is %v", at, i, v)
			}
		}
	}
	if kernels.Load() == 0 {
		t.Error("no kernel has copied")
	}
}

// TestWebGPUNarrows checks that a device tests its conversion to half floats once, before the first kernel that rounds
// to them. A device with a wrong conversion uses arithmetic on bits instead.
func TestWebGPUNarrows(t *testing.T) {
	for name, right := range map[string]bool{"right": true, "wrong": false} {
		t.Run(name, func(t *testing.T) {
			var measured, converted atomic.Int32
			lacks := false
			wear(t, &mask{
				change: func(a *gpu.Adapter) {
					lacks = a.Target.Features&wgsl.Half == 0
					a.Type, a.Target.Unfused = gpu.Discrete, false
				},
				text: func(s string) string {
					short := strings.Contains(s, "f32(f16(") || strings.Contains(s, "vec4f(vec4h(")
					switch {
					case strings.Contains(s, "fn narrows("):
						measured.Add(1)
						if !right {
							s = strings.ReplaceAll(s, "f32(f16(x[", "(1.0f * (x[")
						}
					case short:
						converted.Add(1)
					}
					return s
				},
			})
			dev, err := device.Open(t.Context(), device.Require(device.WebGPU))
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			roundedCasts(t, dev)
			want := int32(1)
			if lacks {
				want = 0 // a device without half floats has no conversion to test
			}
			if m, c := measured.Load(), converted.Load(); m != want || (c > 0) != (right && !lacks) {
				t.Errorf("measured %d times, %d kernels with conversions; half floats are missing: %v", m, c, lacks)
			}
		})
	}
}
