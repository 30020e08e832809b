//go:build cgo && !nowebgpu && !js

package webgpu_test

import (
	"testing"

	"github.com/rayo-go/rayo/batch"
)

// TestWebGPUOneSubmission checks that twenty operations that do not fuse, with their operands and
// results, are one submission to the library, both as a new batch and as a plan.
func TestWebGPUOneSubmission(t *testing.T) {
	c := takeCensus(t)
	dev := open(t)
	ctx := t.Context()
	const rows, cols, many = 4, 256, 20
	x, y := make([]float32, rows*cols), make([]float32, rows*cols)
	for i := range x {
		x[i] = float32(i%7) - 3
	}
	b := batch.New(dev)
	record := func() {
		b.Reset()
		v := b.Upload(x, rows, cols)
		for range many {
			v = b.Softmax(v)
		}
		batch.ReadInto(b, v, y)
	}
	check := func(how string, run func() error) {
		t.Helper()
		before, submits, dispatches := dev.Stats(), c.submits.Load(), c.dispatches.Load()
		if err := run(); err != nil {
			t.Fatalf("%s: %v", how, err)
		}
		after := dev.Stats()
		if n := c.submits.Load() - submits; n != 1 || after.Submits-before.Submits != 1 || after.Submissions-before.Submissions != 1 {
			t.Errorf("%s: %d submissions to the library; %+v, before %+v", how, n, after, before)
		}
		if n := c.dispatches.Load() - dispatches; n < many || after.Steps-before.Steps < many {
			t.Errorf("%s: %d dispatches in %d steps: they fuse", how, n, after.Steps-before.Steps)
		}
		// Repeated softmax converges to equal elements.
		for i, v := range y {
			if v*cols < 0.999 || v*cols > 1.001 {
				t.Fatalf("%s: element %d is %v", how, i, v)
			}
		}
		clear(y)
	}
	record()
	if err := b.Execute(ctx); err != nil { // the first execution also runs the self-tests of the kernels
		t.Fatal(err)
	}
	for range 2 {
		record()
		check("recorded", func() error { return b.Execute(ctx) })
	}
	record()
	plan, err := b.Compile(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	for range 3 {
		check("kept", func() error { return plan.Run(ctx) })
	}
}
