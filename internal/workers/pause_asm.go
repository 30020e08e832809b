//go:build !noasm && (amd64 || arm64)

package workers

// pause tells the processor that the caller spins: for some tens of
// nanoseconds it leaves power, and on shared cores time, to others.
//
//go:noescape
func pause()
