//go:build js && wasm

// Package jshost runs a module of kernels on the memory of this very program, which
// JavaScript has: nothing is copied.
package jshost

import (
	"errors"
	"fmt"
	"syscall/js"
	"unsafe"

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
	memory, err := findMemory()
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

// findMemory returns the memory of this program.
func findMemory() (js.Value, error) {
	for _, find := range []func() js.Value{memoryOfWrapper, memoryOfReference} {
		if m := attempt(find); isOurs(m) {
			return m, nil
		}
	}
	return js.Undefined(), errors.New("jshost: the memory of this program was not found")
}

// attempt returns what find does, or undefined where JavaScript has not what it looks for.
func attempt(find func() js.Value) (m js.Value) {
	defer func() {
		if recover() != nil {
			m = js.Undefined()
		}
	}()
	return find()
}

// isOurs reports whether m is a WebAssembly.Memory in which a number that was just made
// up lies where it does here.
func isOurs(m js.Value) bool {
	if m.Type() != js.TypeObject || !m.InstanceOf(js.Global().Get("WebAssembly").Get("Memory")) {
		return false
	}
	sentinel := new([4]int32)
	math := js.Global().Get("Math")
	for i := range sentinel {
		sentinel[i] = int32(math.Call("random").Float() * (1 << 31))
	}
	at := address(unsafe.Pointer(sentinel))
	if m.Get("buffer").Get("byteLength").Int() < at+16 {
		return false
	}
	view := js.Global().Get("Int32Array").New(m.Get("buffer"), at, 4)
	for i, v := range sentinel {
		if int32(view.Index(i).Int()) != v {
			return false
		}
	}
	return true
}

// memoryOfWrapper asks the object that runs this program, which a wrapper of a function
// is made by: as Go's wasm_exec.js has it.
func memoryOfWrapper() js.Value {
	const maker = "_makeFuncWrapper"
	prototype := js.Global().Get("Go").Get("prototype")
	original := prototype.Get(maker)
	if original.Type() != js.TypeFunction {
		return js.Undefined()
	}
	var goes js.Value
	hook := js.FuncOf(func(this js.Value, _ []js.Value) any { goes = this; return js.Undefined() })
	defer hook.Release()
	prototype.Set(maker, hook)
	made := js.FuncOf(func(js.Value, []js.Value) any { return nil })
	prototype.Set(maker, original)
	made.Release()
	return goes.Get("_inst").Get("exports").Get("mem")
}

// memoryOfReference asks the same object by the number of the reference to it, which
// package syscall/js gives it, where there is no global Go.
func memoryOfReference() js.Value {
	const (
		object = 0x7FF80000 | 1
		number = 6
	)
	v := js.Null()
	*(*uint64)(unsafe.Pointer(&v)) = object<<32 | number
	return v.Get("_inst").Get("exports").Get("mem")
}
