//go:build js && !noasm

package simd

import "unsafe"

// hide returns the address of s and makes s escape to the heap: kernels get addresses as numbers,
// and a stack could move before the call.
func hide(s []float32) *float32 { return unsafe.SliceData(s) }
