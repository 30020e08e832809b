//go:build noasm || !amd64

package simd

func quantKernelsOf(Level) []quantKernels { return nil }
