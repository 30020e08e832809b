//go:build noasm || !(amd64 || arm64 || js || wazero)

package simd

func int8KernelsOf(Level) int8Kernels { return int8Kernels{} }
