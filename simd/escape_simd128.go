//go:build (js || wazero) && !noasm

package simd

import "unsafe"

// hide returns the address of s and makes s escape to the heap: hosts keep addresses until a call
// ends, and a stack could move before.
func hide(s []float32) *float32 { return unsafe.SliceData(s) }
