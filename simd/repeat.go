package simd

import "unsafe"

// Repeat writes each of count elements of 32 bits n times to dst: first the one at x, then those
// that are step elements further each. A kernel in assembly cannot be preempted: callers with more
// than some 65,536 results call it several times.
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
