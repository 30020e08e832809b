//go:build js && wasm

// Package jshost runs a module of kernels on the memory of this program, without copies of
// arguments.
package jshost

import (
	"syscall/js"
	"unsafe"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/jsmemory"
	"github.com/rayo-go/rayo/internal/wasm/frame"
)

// Host is an instance of a module whose kernels work on this program's memory. Pages have
// one thread, so only one call runs at a time.
type Host struct {
	call *Call
	// runner is an object whose method Symbol.hasInstance runs call. The operator instanceof calls this method: in
	// syscall/js it takes a third of the time of Invoke, which makes a list of arguments and catches exceptions.
	runner js.Value
}

// Call is a call of a kernel. Its methods set arguments. They get the numbers of bytes that a kernel
// reads and writes, which only hosts with a memory of their own need.
//
// A Call keeps addresses instead of pointers, because each pointer that is stored while the garbage collector works
// takes longer than a short kernel. The collector cannot run before Run returns: a page has one
// thread, and nothing in between allocates memory or lets another goroutine run.
type Call struct {
	frame.Call
	host *Host
}

// Start compiles a module and connects it to the memory. It returns an error if the engine does not
// support the instructions of vectors, if the page's policy forbids WebAssembly, or if this program's
// memory is not found with certainty. If the engine has the relaxed instructions, a product and its
// sum take one instruction.
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
	run := instance.Get("exports").Get("run").Call("bind", js.Null(), int(address(unsafe.Pointer(&h.call.Call))), 1)
	h.runner = object()
	js.Global().Get("Reflect").Call("set", h.runner, js.Global().Get("Symbol").Get("hasInstance"), run)
	return h, nil
}

// Begin returns the call of the kernel with the given index in the table.
func (h *Host) Begin(place uint32) *Call {
	h.call.Kernel = place
	return h.call
}

// Read sets pointer i to p: the kernel reads bytes there. p may be nil.
func (c *Call) Read(i int, p unsafe.Pointer, _ int) { c.Pointers[i] = address(p) }

// Write sets pointer i to p: the kernel writes bytes there. p may be nil.
func (c *Call) Write(i int, p unsafe.Pointer, _ int) { c.Pointers[i] = address(p) }

// ReadRows sets pointer i to p, the first of several rows that the kernel reads. It returns the
// distance of the rows for the kernel.
func (c *Call) ReadRows(i int, p unsafe.Pointer, _, _, apart int) int {
	c.Pointers[i] = address(p)
	return apart
}

// WriteRows is ReadRows for rows that the kernel writes.
func (c *Call) WriteRows(i int, p unsafe.Pointer, _, _, apart int) int {
	c.Pointers[i] = address(p)
	return apart
}

// UpdateRows is ReadRows for rows that the kernel reads and writes.
func (c *Call) UpdateRows(i int, p unsafe.Pointer, _, _, apart int) int {
	c.Pointers[i] = address(p)
	return apart
}

// Gather passes p as pointer i, and a list of offsets from p in bytes as pointer i+1. The kernel reads
// a block of bytes at each offset.
func (c *Call) Gather(i int, p unsafe.Pointer, offsets *int, _, _ int) {
	c.Pointers[i], c.Pointers[i+1] = address(p), address(unsafe.Pointer(offsets))
}

// Run calls the kernel, clears the pointers, and returns the kernel's results.
func (c *Call) Run() [2]float32 {
	c.host.runner.InstanceOf(c.host.runner)
	c.Pointers = [frame.NumPointers]uintptr{}
	return c.Results
}

// array returns a copy of bytes that JavaScript can read.
func array(b []byte) js.Value {
	a := js.Global().Get("Uint8Array").New(len(b))
	js.CopyBytesToJS(a, b)
	return a
}

func object() js.Value { return js.Global().Get("Object").New() }

// address returns p as an index into the memory in JavaScript. It makes the variable that p points to escape to
// the heap, because Go moves stacks.
func address(p unsafe.Pointer) uintptr {
	if never {
		escaped = p
	}
	return uintptr(p)
}

var (
	never   bool
	escaped unsafe.Pointer
)
