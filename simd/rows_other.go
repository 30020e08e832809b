//go:build noasm || !(amd64 || arm64)

package simd

func rowKernelsOf(Level) *rowKernels { return &rowsGeneric }
