//go:build (js || wazero) && !noasm

package simd

import _ "embed"

// simd128 is the module of kernels. Where it cannot be used, plain Go computes.
//
//go:embed simd128.wasm
var simd128 []byte

func machineLevels() []Level {
	if host == nil {
		return nil
	}
	return []Level{SIMD128}
}
