//go:build noasm || !(amd64 || js || wazero)

package simd

func quantKernelsOf(Level) []quantKernels { return nil }
