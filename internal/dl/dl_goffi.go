//go:build !cgo && !goffi_static && (linux || darwin) && !android && (amd64 || arm64)

package dl

import (
	"errors"
	"runtime"
	"unsafe"

	"github.com/go-webgpu/goffi/ffi"
)

func load(name string) (uintptr, error) {
	// The message of a failure belongs to the thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	h, err := ffi.LoadLibrary(name)
	if err != nil {
		var e *ffi.LibraryError
		if errors.As(err, &e) && e.Err != nil {
			err = e.Err
		}
		return 0, err
	}
	return uintptr(h), nil
}

func find(handle uintptr, name string) (uintptr, error) {
	// The handle has a pointer type, but does not point into Go's memory.
	a, err := ffi.GetSymbol(*(*unsafe.Pointer)(unsafe.Pointer(&handle)), name)
	return uintptr(a), err
}

// cgocall leaves Go for a function with C's calling convention, on the stack of
// the thread. Packages of the kind of goffi and purego depend on it, for which
// the runtime keeps its name and its type.
//
//go:linkname cgocall runtime.cgocall
//go:noescape
func cgocall(fn uintptr, arg unsafe.Pointer) int32

// trampolineAddress is the address of the assembly that makes the call.
var trampolineAddress uintptr

// Call makes the call. Everything that the arguments point to must stay
// reachable until it returns.
func (f *Frame) Call() { cgocall(trampolineAddress, unsafe.Pointer(f)) }
