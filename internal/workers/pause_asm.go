//go:build !noasm && (amd64 || arm64)

package workers

// pause tells the processor that the caller spins: for tens of nanoseconds the caller uses less power,
// and on a shared core less time.
//
//go:noescape
func pause()
