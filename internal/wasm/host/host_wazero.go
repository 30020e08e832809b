//go:build wazero && !js

// Package host is what runs modules of SIMD128 kernels in this build: the JavaScript engine, or
// wazero under the build tag of that name.
package host

import "github.com/rayo-go/rayo/internal/wasm/wazero"

// Host is an instance of a module.
type Host = wazero.Host

// Start returns an instance whose kernels work on copies of their arguments.
func Start(module []byte) (*Host, error) { return wazero.Start(module) }
