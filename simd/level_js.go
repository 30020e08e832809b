//go:build js && !noasm

package simd

import (
	_ "embed"
	"unsafe"

	"github.com/rayo-go/rayo/internal/wasm/frame"
	"github.com/rayo-go/rayo/internal/wasm/jshost"
)

// simd128 is the module of kernels. Where it cannot be used, plain Go computes.
//
//go:embed simd128.wasm
var simd128 []byte

// host runs the kernels: nil where it cannot.
var host, _ = jshost.Start(simd128)

func machineLevels() []Level {
	if host == nil {
		return nil
	}
	return []Level{SIMD128}
}

// begin returns the call of a kernel, to be given arguments. Pointers stored in it escape to the
// heap, because the compiler cannot see their use.
func begin(place uint32) *frame.Call {
	host.Call.Kernel = place
	return host.Call
}

// pointersTo stores the addresses of arguments in a call.
func pointersTo(c *frame.Call, at ...*float32) {
	for i, p := range at {
		c.Pointers[i] = unsafe.Pointer(p)
	}
}
