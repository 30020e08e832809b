//go:build noasm || !(amd64 || arm64 || js)

package simd

func int8KernelsOf(Level) int8Kernels { return int8Kernels{} }
