//go:build cgo && !nowebgpu && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package wgpunative

import (
	"testing"

	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/hosttest"
)

// turns runs a list several times, and lets the device prepare it for the next run.
func turns(t *testing.T, d *device, times int, list ...webgpu.HostCommand) {
	t.Helper()
	for range times {
		ticket := hosttest.Must(d.Submit(list, nil))(t)
		d.Again(ticket)
		for done := uint64(0); done < ticket; {
			done = hosttest.Must(d.Poll())(t)
		}
	}
}

// TestAhead checks that a repeated list is prepared for its third run, and that no list stays prepared
// after one of its objects is freed.
func TestAhead(t *testing.T) {
	d := hosttest.Open(t, New, driver).(*device)
	buffer := func() webgpu.HostBuffer { return hosttest.Must(d.NewBuffer(64, webgpu.Storage))(t) }
	x, y := buffer(), buffer()
	run := func(times int, bytes int64) {
		t.Helper()
		turns(t, d, times, webgpu.HostCommand{Do: webgpu.Copy, Src: x, Dst: y, Bytes: bytes})
	}
	ready := func() (n int) {
		for _, s := range d.ahead.kept {
			if s != nil && s.ready != nil {
				n++
			}
		}
		return n
	}
	for i, want := range []int{0, 1, 1, 1} {
		if run(1, 4); ready() != want {
			t.Fatalf("after %d times %d are ready, not %d", i+1, ready(), want)
		}
	}
	if run(2, 8); ready() != 2 {
		t.Errorf("of two submissions %d are ready", ready())
	}
	for n := range int64(len(d.ahead.kept)) {
		run(1, 12+4*n)
	}
	if ready() != 0 {
		t.Errorf("%d are ready of those that came before the last %d", ready(), len(d.ahead.kept))
	}
	p := hosttest.Must(d.NewPipeline(hosttest.Shader))(t)
	g := hosttest.Must(d.NewGroup(p, []webgpu.HostRange{{Buffer: x, Bytes: 64}, {Buffer: y, Bytes: 64}}))(t)
	for what, r := range map[string]interface{ Release() }{"buffer": buffer(), "group": g, "pipeline": p} {
		if run(2, 4); ready() == 0 {
			t.Error("nothing is ready")
		}
		if r.Release(); ready() != 0 {
			t.Errorf("%d are ready when a %s has been freed", ready(), what)
		}
	}
	x.Release()
	y.Release()
}
