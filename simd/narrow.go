package simd

import "unsafe"

// copyRuns is [CopyRuns] in Go.
func copyRuns(dst, x *uint32, n, step, count int) {
	to := unsafe.Slice(dst, n*count)
	for i := range count {
		copy(to[i*n:][:n], unsafe.Slice(word(x, i*step), n))
	}
}

// word returns the address of the element i after the one at p.
func word(p *uint32, i int) *uint32 { return (*uint32)(unsafe.Add(unsafe.Pointer(p), i*4)) }

// wordOf returns p as the address of bits.
func wordOf(p *float32) *uint32 { return (*uint32)(unsafe.Pointer(p)) }
