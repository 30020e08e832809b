//go:build !nowebgpu && !goffi_static && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package gogpu

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/rayo-go/rayo/internal/webgpu/hosttest"
)

// TestAddresses checks that memory to which the driver writes by an integer address does not move with
// the stack. A variable on the stack would move.
func TestAddresses(t *testing.T) {
	moved := make(chan bool)
	go func() {
		var variable out
		before := variable.address()
		hosttest.Deep(1000, func() {})
		moved <- variable.address() != before
	}()
	if !<-moved {
		t.Error("the stack did not move, so nothing is tested")
	}
	go func() {
		o, w, l := newOut(), newText("main"), newTexts([]string{"one", "two"})
		before := [...]uintptr{o.address(), w.address(), l.address(), uintptr(unsafe.Pointer(*l.first))}
		hosttest.Deep(1000, func() {})
		moved <- before != [...]uintptr{o.address(), w.address(), l.address(), uintptr(unsafe.Pointer(*l.first))}
	}()
	if <-moved {
		t.Error("an address of what the driver writes to has changed")
	}
}

// TestSteady checks that submissions reuse the objects of earlier submissions.
func TestSteady(t *testing.T) {
	d := hosttest.Open(t, New, "lavapipe")
	here := func(f func()) { f() }
	for range 4 {
		if err := hosttest.Trip(d, 100, here); err != nil {
			t.Fatal(err)
		}
	}
	v := d.(*device)
	blocks, pools, idle := len(v.memory.blocks), len(v.groups.list), len(v.idle)
	for range 300 {
		if err := hosttest.Trip(d, 1+rand.IntN(50000), here); err != nil {
			t.Fatal(err)
		}
	}
	v.retire()
	if len(v.memory.blocks) > blocks+1 || len(v.groups.list) > pools || len(v.idle) > idle+1 || len(v.live) > 0 {
		t.Errorf("%d blocks, %d pools, %d recorders became %d, %d, %d, and %d objects live", blocks, pools, idle, len(v.memory.blocks), len(v.groups.list), len(v.idle), len(v.live))
	}
}
