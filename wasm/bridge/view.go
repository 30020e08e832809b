//go:build js

package bridge

import (
	"runtime"
	"syscall/js"
	"unsafe"

	"github.com/rayo-go/rayo/internal/jsmemory"
)

// escapes moves the values stored in it to the heap, because stacks move.
var escapes any

// View calls f with a typed array over the memory of x: nothing is copied, and
// JavaScript writes into x. It is for calls that read or write the array at once, such
// as putImageData or WebGL's bufferData.
//
// The array is valid until f returns, or until Go allocates memory: an array that is kept,
// or given to something that looks at it later, is empty once the memory has grown, and
// shows other data before. Copy it there, or use [TypedArray].
//
// # Errors
//   - an error where the memory is not found, as in a page whose wasm_exec.js is of another Go; f is not called.
func View[T Element](x []T, f func(array js.Value)) error {
	memory, err := jsmemory.Find()
	if err != nil {
		return err
	}
	escapes = x
	escapes = nil
	at := 0
	if len(x) > 0 {
		at = int(uintptr(unsafe.Pointer(unsafe.SliceData(x))))
	}
	f(js.Global().Get(nameOf[T]()).New(memory.Get("buffer"), at, len(x)))
	runtime.KeepAlive(x)
	return nil
}
