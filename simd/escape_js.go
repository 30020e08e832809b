//go:build js && !noasm

package simd

import "unsafe"

// hide returns where s begins, for all to see: kernels get addresses as numbers, and a
// stack may move between then and the call. What they read and write is on the heap.
func hide(s []float32) *float32 { return unsafe.SliceData(s) }
