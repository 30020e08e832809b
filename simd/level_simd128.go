//go:build (js || wazero) && !noasm

package simd

import (
	_ "embed"

	wasm "github.com/rayo-go/rayo/internal/wasm/host"
)

// simd128 is the module of kernels. Where it cannot be used, plain Go computes.
//
//go:embed simd128.wasm
var simd128 []byte

// host runs the kernels: nil where it cannot.
var host, _ = wasm.Start(simd128)

func machineLevels() []Level {
	if host == nil {
		return nil
	}
	return []Level{SIMD128}
}
