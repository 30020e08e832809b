//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package memory

// adviseHuge does nothing: these systems promote aligned memory to large pages
// themselves, or not at all.
func adviseHuge([]byte) {}
