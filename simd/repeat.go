package simd

import "unsafe"

// Repeat writes each of count elements of 32 bits n times to dst. The elements start at x and are step
// elements apart. The runtime cannot preempt a kernel in assembly, so callers with more than about
// 65,536 results must call it several times.
//
//go:noinline
func Repeat(dst, x *uint32, n, step, count int) {
	done := repeatVectors(dst, x, n, step, count)
	to := unsafe.Slice(dst, n*count)[n*done:]
	for k := done; k < count; k++ {
		v := *word(x, k*step)
		for i := range n {
			to[i] = v
		}
		to = to[n:]
	}
}
