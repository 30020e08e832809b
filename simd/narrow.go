package simd

import "unsafe"

// word returns the address of the element i after the one at p.
func word(p *uint32, i int) *uint32 { return (*uint32)(unsafe.Add(unsafe.Pointer(p), i*4)) }

// wordOf returns p as the address of bits.
func wordOf(p *float32) *uint32 { return (*uint32)(unsafe.Pointer(p)) }
