//go:build noasm || !(amd64 || arm64)

package simd

func reduceKernelsOf(Level) *reduceKernels { return &reduceGeneric }
