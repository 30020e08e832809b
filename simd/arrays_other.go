//go:build noasm || !amd64

package simd

func sortKernelsOf(Level) *sortKernels { return nil }

func gatherShortRowsOf(Level) func(dst, x *byte, ids *int32, n, extent, size int) int { return nil }

func repeatOf(Level) func(dst, x *uint32, n, step, count int) { return nil }

func wordFoldsOf(Level) *wordFolds { return new(wordFolds) }
