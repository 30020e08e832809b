//go:build (js || wazero) && !noasm

package simd

import (
	_ "embed"

	wasm "github.com/rayo-go/rayo/internal/wasm/host"
)

// simd128 is the WebAssembly module of kernels. If the host cannot run it, loops in plain Go compute.
//
//go:embed simd128.wasm
var simd128 []byte

// host runs the kernels. It is nil if the host cannot run the module.
var host, _ = wasm.Start(simd128)

func machineLevels() []Level {
	if host == nil {
		return nil
	}
	return []Level{SIMD128}
}
