//go:build js && wasm

// Package jshost runs a module of kernels on the memory of this very program, which
// JavaScript has: nothing is copied.
package jshost

import (
	"fmt"
	"syscall/js"
	"unsafe"

	"github.com/rayo-go/rayo/internal/jsmemory"
	"github.com/rayo-go/rayo/internal/wasm/frame"
)

// Host is an instance of a module whose kernels work on this program's memory. Pages have
// one thread, so that one call is under way at a time.
type Host struct {
	// Call is the call that Run makes. It is on the heap, and what its pointers point to
	// comes to be there too.
	Call *frame.Call
	run  js.Value // of Call
}

// Start compiles a module and gives it the memory. It reports an error where the engine
// does not know the instructions of vectors, where the page's policy forbids
// WebAssembly, or where this program's memory cannot be found for certain.
func Start(module []byte) (h *Host, err error) {
	defer func() {
		if r := recover(); r != nil {
			h, err = nil, fmt.Errorf("jshost: %v", r)
		}
	}()
	memory, err := jsmemory.Find()
	if err != nil {
		return nil, err
	}
	wasm := js.Global().Get("WebAssembly")
	bytes := js.Global().Get("Uint8Array").New(len(module))
	js.CopyBytesToJS(bytes, module)
	env, imports := object(), object()
	env.Set("memory", memory)
	imports.Set("env", env)
	instance := wasm.Get("Instance").New(wasm.Get("Module").New(bytes), imports)
	h = &Host{Call: new(frame.Call)}
	h.run = instance.Get("exports").Get("run").Call("bind", js.Null(), address(unsafe.Pointer(h.Call)), 1)
	return h, nil
}

// Run makes the call, and forgets its pointers then.
func (h *Host) Run() {
	h.run.Invoke()
	h.Call.Pointers = [frame.NumPointers]unsafe.Pointer{}
}

func object() js.Value { return js.Global().Get("Object").New() }

// address returns where p points to as JavaScript counts.
func address(p unsafe.Pointer) int { return int(uintptr(p)) }
