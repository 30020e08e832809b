//go:build arm64 && !noasm

package simd

func reduceKernelsOf(Level) *reduceKernels { return &reduceGeneric }
