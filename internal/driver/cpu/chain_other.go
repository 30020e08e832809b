//go:build noasm || !(js || wazero)

package cpu

// linkChains does nothing, because calls of kernels in assembly are cheap.
func linkChains() {}
