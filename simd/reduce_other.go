//go:build noasm || !(amd64 || arm64 || js || wazero)

package simd

func reduceKernelsOf(Level) *reduceKernels { return &reduceGeneric }
