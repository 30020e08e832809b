//go:build (js || wazero) && !noasm

package simd

import (
	_ "embed"
	"sync"

	wasm "github.com/rayo-go/rayo/internal/wasm/host"
)

// The WebAssembly modules of kernels: those of elementwise operations, and the others, which the linker leaves out of
// programs that use none of them. If the host cannot run a module, loops in plain Go compute.
var (
	//go:embed simd128_elements.wasm
	elementModule []byte

	//go:embed simd128_arrays.wasm
	arrayModule []byte
)

// elements runs the kernels of elementwise operations, and arrays runs the others once hasArrays has returned true.
// They are nil if the host cannot run their module.
var (
	elements, _ = wasm.Start(elementModule)
	arrays      *wasm.Host
)

var arraysOnce sync.Once

// hasArrays starts the module of the kernels that are not elementwise at its first call, and reports whether it runs.
func hasArrays(l Level) bool {
	if l != SIMD128 || elements == nil {
		return false
	}
	arraysOnce.Do(func() { arrays, _ = wasm.Start(arrayModule) })
	return arrays != nil
}

func machineLevels() []Level {
	if elements == nil {
		return nil
	}
	return []Level{SIMD128}
}
