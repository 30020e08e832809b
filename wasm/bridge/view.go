//go:build js

package bridge

import (
	"runtime"
	"syscall/js"
	"unsafe"

	"github.com/rayo-go/rayo/internal/jsmemory"
)

// escapes makes values that are stored in it escape to the heap, because Go moves stacks.
var escapes any

// View calls f with a typed array over the memory of x: nothing is copied, and
// JavaScript writes into x. It is for calls that read or write the array at once, such
// as putImageData or WebGL's bufferData.
//
// The array is valid until f returns or Go allocates memory. If JavaScript keeps it, it may show
// other data later, and it becomes empty when the memory grows. To keep the data, copy the
// array in JavaScript or use [TypedArray].
//
// # Errors
//   - an error if View does not find the memory, for example because wasm_exec.js belongs to another version of Go.
//     View does not call f then.
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
