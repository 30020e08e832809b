//go:build amd64 && !noasm

package simd

func reduceKernelsOf(Level) *reduceKernels { return &reduceGeneric }
