//go:build noasm || !(js || wazero)

package cpu

// linkChains does nothing: calls of kernels in assembly cost little.
func linkChains() {}
