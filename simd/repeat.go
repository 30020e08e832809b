package simd

import "unsafe"

// Repeat writes each of count elements of 32 bits n times to dst: first the one at x, then those
// that are step elements further each. A kernel in assembly cannot be preempted: callers with more
// than some 65,536 results call it several times.
func Repeat(dst, x *uint32, n, step, count int) {
	if n >= 8 && repeatKernel != nil {
		repeatKernel(dst, x, n, step, count)
		return
	}
	to := unsafe.Slice(dst, n*count)
	for k := range count {
		v := *(*uint32)(unsafe.Add(unsafe.Pointer(x), 4*k*step))
		for i := range n {
			to[i] = v
		}
		to = to[n:]
	}
}

// repeatKernel is Repeat for n of at least 8, or nil.
var repeatKernel = repeatOf(active)
