//go:build amd64 && !noasm

package simd

func rowKernelsOf(Level) *rowKernels { return &rowsGenericKernels }
