//go:build noasm || !(amd64 || arm64 || js || wazero)

package simd

func rowKernelsOf(Level) *rowKernels { return &rowsGeneric }
