package gguf

import (
	"fmt"
	"runtime/debug"
	"unsafe"
)

// guard calls f with a view. A fault at an address in the view, which access to missing
// pages of a truncated file causes, becomes an error. Other panics continue.
func guard(t *Tensor, view []byte, f func([]byte) error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(old)
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		fault, ok := p.(interface{ Addr() uintptr })
		if !ok || !within(view, fault.Addr()) {
			panic(p)
		}
		err = &FormatError{File: t.part.name, Field: fmt.Sprintf("tensor %q", shortened(t.Name)), Offset: t.Offset(), Err: ErrTruncated}
	}()
	return f(view)
}

// within reports whether an address lies in b.
func within(b []byte, addr uintptr) bool {
	from := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return addr >= from && addr-from < uintptr(len(b))
}
