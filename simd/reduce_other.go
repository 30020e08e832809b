//go:build noasm || !(amd64 || arm64 || js || wazero)

package simd

func reduceKernelsOf(Level) *reduceKernels { return reduceGeneric() }

// maxAbsOf returns a kernel of reduceKernelsOf.
func maxAbsOf(Level) func(x, y *float32, n int) float32 { return reduceMaxAbsGeneric }
