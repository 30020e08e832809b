//go:build wazero && !js && !noasm

package simd

import "github.com/rayo-go/rayo/internal/wasm/wazero"

// host runs the kernels in wazero, with copies of their arguments.
var host, _ = wazero.Start(simd128)
