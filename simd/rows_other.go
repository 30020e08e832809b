//go:build noasm || !(amd64 || arm64 || js)

package simd

func rowKernelsOf(Level) *rowKernels { return &rowsGeneric }
