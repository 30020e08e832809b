//go:build noasm || !(amd64 || arm64 || js)

package simd

func reduceKernelsOf(Level) *reduceKernels { return &reduceGeneric }
