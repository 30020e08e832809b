//go:build js && !noasm

package simd

import "github.com/rayo-go/rayo/internal/wasm/jshost"

// host runs the kernels on this program's memory: nil where it cannot.
var host, _ = jshost.Start(simd128)
