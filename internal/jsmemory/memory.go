//go:build js

package jsmemory

import (
	"errors"
	"sync"
	"syscall/js"
	"unsafe"
)

// ErrNotFound means that the memory is not where Go's wasm_exec.js keeps it, or that the memory found
// there is not that of this program.
var ErrNotFound = errors.New("the memory of this program was not found in JavaScript: wasm_exec.js does not match this Go version")

var once = sync.OnceValues(func() (js.Value, error) {
	for _, get := range []func() js.Value{fromWrapper, fromReference} {
		if m := caught(get); ours(m) {
			return m, nil
		}
	}
	return js.Undefined(), ErrNotFound
})

// Find returns the WebAssembly.Memory of this program. Each time the memory grows, its
// buffer becomes a new object.
//
// # Errors
//   - [ErrNotFound]
func Find() (js.Value, error) { return once() }

// caught returns the result of get, or undefined if get panics.
func caught(get func() js.Value) (m js.Value) {
	defer func() {
		if recover() != nil {
			m = js.Undefined()
		}
	}()
	return get()
}

// fromWrapper finds the object that runs this program. It makes package syscall/js wrap a
// function, which calls a method of that object, after replacing the method for a moment.
func fromWrapper() js.Value {
	const method = "_makeFuncWrapper"
	class := js.Global().Get("Go").Get("prototype")
	kept := class.Get(method)
	if kept.Type() != js.TypeFunction {
		return js.Undefined()
	}
	var runner js.Value
	ours := js.FuncOf(func(this js.Value, _ []js.Value) any {
		runner = this
		return js.Undefined()
	})
	defer ours.Release()
	class.Set(method, ours)
	wrapped := js.FuncOf(func(js.Value, []js.Value) any { return nil })
	class.Set(method, kept)
	wrapped.Release()
	return runner.Get("_inst").Get("exports").Get("mem")
}

// fromReference forges a reference to the object, which has number 6 in package syscall/js. It is
// for pages in which the class Go is not global.
func fromReference() js.Value {
	const nanOfObject, runner = 0x7FF80001, 6
	v := js.Null()
	*(*uint64)(unsafe.Pointer(&v)) = nanOfObject<<32 | runner
	return v.Get("_inst").Get("exports").Get("mem")
}

// mark is a variable that ours searches for in a memory.
var mark [4]uint32

// ours reports whether m is the memory of this program: it stores random numbers in mark and compares
// them with the content of m.
func ours(m js.Value) bool {
	if m.Type() != js.TypeObject || !m.InstanceOf(js.Global().Get("WebAssembly").Get("Memory")) {
		return false
	}
	random := js.Global().Get("Math") // package math/rand would make every page larger
	for i := range mark {
		mark[i] = uint32(random.Call("random").Float() * (1 << 32))
	}
	at := int(uintptr(unsafe.Pointer(&mark)))
	buffer := m.Get("buffer")
	if buffer.Get("byteLength").Int() < at+int(unsafe.Sizeof(mark)) {
		return false
	}
	view := js.Global().Get("Uint32Array").New(buffer, at, len(mark))
	for i, v := range mark {
		if uint32(view.Index(i).Float()) != v {
			return false
		}
	}
	return true
}
