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
	call *Call
	run  js.Value // of call
}

// Call is a call of a kernel, to be given arguments. It is on the heap, and what its pointers
// point to comes to be there too. Its methods say how many bytes a kernel reads and writes,
// which hosts with a memory of their own need to know.
type Call struct {
	frame.Call
	host *Host
}

// Start compiles a module and gives it the memory. It reports an error where the engine
// does not know the instructions of vectors, where the page's policy forbids
// WebAssembly, or where this program's memory cannot be found for certain. Where the engine has the relaxed
// instructions, products are added in one step.
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
	if wasm.Call("validate", array([]byte(frame.RelaxedProbe))).Bool() {
		module = frame.Relaxed(module)
	}
	env, imports := object(), object()
	env.Set("memory", memory)
	imports.Set("env", env)
	instance := wasm.Get("Instance").New(wasm.Get("Module").New(array(module)), imports)
	h = new(Host)
	h.call = &Call{host: h}
	h.run = instance.Get("exports").Get("run").Call("bind", js.Null(), address(unsafe.Pointer(&h.call.Call)), 1)
	return h, nil
}

// Begin returns the call of the kernel at a place of the table.
func (h *Host) Begin(place uint32) *Call {
	h.call.Kernel = place
	return h.call
}

// Read makes pointer i one to bytes that the kernel reads; p may be nil.
func (c *Call) Read(i int, p unsafe.Pointer, _ int) { c.Pointers[i] = p }

// Write makes pointer i one to bytes that the kernel writes; p may be nil.
func (c *Call) Write(i int, p unsafe.Pointer, _ int) { c.Pointers[i] = p }

// ReadRows makes pointer i one to rows of so many bytes that the kernel reads, and returns how
// far apart the kernel finds them.
func (c *Call) ReadRows(i int, p unsafe.Pointer, _, _, apart int) int {
	c.Pointers[i] = p
	return apart
}

// WriteRows is ReadRows for rows that the kernel writes.
func (c *Call) WriteRows(i int, p unsafe.Pointer, _, _, apart int) int {
	c.Pointers[i] = p
	return apart
}

// UpdateRows is ReadRows for rows that the kernel reads and writes.
func (c *Call) UpdateRows(i int, p unsafe.Pointer, _, _, apart int) int {
	c.Pointers[i] = p
	return apart
}

// Gather passes p as pointer i, and a list of offsets from p in bytes as pointer i+1. The kernel reads
// a block of bytes at each offset.
func (c *Call) Gather(i int, p unsafe.Pointer, offsets *int, _, _ int) {
	c.Pointers[i], c.Pointers[i+1] = p, unsafe.Pointer(offsets)
}

// Run makes the call, forgets its pointers, and returns the kernel's results.
func (c *Call) Run() [2]float32 {
	c.host.run.Invoke()
	c.Pointers = [frame.NumPointers]unsafe.Pointer{}
	return c.Results
}

// array returns a copy of bytes that JavaScript can read.
func array(b []byte) js.Value {
	a := js.Global().Get("Uint8Array").New(len(b))
	js.CopyBytesToJS(a, b)
	return a
}

func object() js.Value { return js.Global().Get("Object").New() }

// address returns where p points to as JavaScript counts.
func address(p unsafe.Pointer) int { return int(uintptr(p)) }
