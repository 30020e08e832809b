//go:build noasm || !amd64

package simd

func sortKernelsOf(Level) *sortKernels { return nil }
