//go:build wazero && !js

// Package host runs modules of SIMD128 kernels: in the JavaScript engine, or in wazero under the
// build tag wazero.
package host

import "github.com/rayo-go/rayo/internal/wasm/wazero"

// Host is an instance of a module.
type Host = wazero.Host

// Start returns an instance whose kernels work on copies of their arguments.
func Start(module []byte) (*Host, error) { return wazero.Start(module) }

// Block is the number of elements that one call of an elementwise kernel computes at most. The copies of
// so many elements stay in the caches of a core.
const Block = 8192
