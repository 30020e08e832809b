//go:build !noasm

package cuda

const streams = true

// linesOut copies n bytes, a multiple of 64, to a multiple of 64, past the caches.
//
//go:noescape
func linesOut(dst, src *byte, n int)

// linesIn copies n bytes, a multiple of 64, to a multiple of 64, and fetches the
// source for one use.
//
//go:noescape
func linesIn(dst, src *byte, n int)
