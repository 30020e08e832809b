//go:build arm64 && !noasm

package simd

func rowKernelsOf(Level) *rowKernels { return &rowsGeneric }
