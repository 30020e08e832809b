//go:build !amd64 || noasm

package simd

// Interleave does nothing and reports false: there is no kernel for it.
func Interleave(_ *uint32, _ *[8]*uint32, _, _ int) bool { return false }

// transposeNarrow reports false: other kernels transpose all matrices.
func transposeNarrow(_, _ *float32, _, _, _, _ int) bool { return false }

// repeatVectors repeats no element: there is no kernel for it.
func repeatVectors(_, _ *uint32, _, _, _ int) int { return 0 }

// CopyRuns copies count runs of n elements, which are step elements apart in x, to dst, one after the other.
func CopyRuns(dst, x *uint32, n, step, count int) { copyRuns(dst, x, n, step, count) }
