//go:build noasm || !(amd64 || arm64 || js || wazero)

package simd

func gemmKernelsOf(Level) *gemmKernels { return &gemmGeneric }

func mostRowsGoes() int { return 1 }
