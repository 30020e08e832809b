//go:build !noasm

package cuda

const streams = true

// flushed reports whether the processor gives up lines of its caches on demand.
var flushed = flushes()

// linesOut copies n bytes, a multiple of 64, to a multiple of 64, past the caches.
//
//go:noescape
func linesOut(dst, src *byte, n int)

// linesIn copies n bytes, a multiple of 64, from a multiple of 64, and gives up the
// lines that it has read, and the one before them.
//
//go:noescape
func linesIn(dst, src *byte, n int)

// flushes is the bit of CLFLUSHOPT.
func flushes() bool
