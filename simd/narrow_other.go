//go:build !amd64 || noasm

package simd

// Interleave does nothing and reports false: there is no kernel for it.
func Interleave(_ *uint32, _ *[8]*uint32, _, _ int) bool { return false }

// transposeNarrow reports false: other kernels transpose all matrices.
func transposeNarrow(_, _ *float32, _, _, _, _ int) bool { return false }

// transposeTall transposes no row: there is no kernel for it.
func transposeTall(_, _ *float32, _, _, _, _ int) int { return 0 }

// CopyPast copies the first elements of x to dst.
func CopyPast(dst, x []uint32) { copy(dst, x[:len(dst)]) }

// repeatVectors repeats no element: there is no kernel for it.
func repeatVectors(_, _ *uint32, _, _, _ int) int { return 0 }

// HasRows reports whether CopyRows has a kernel.
const HasRows = false

// CopyRows does nothing and returns false: there is no kernel for it.
func CopyRows(_, _ *uint32, _, _, _, _ int, _ bool) bool { return false }

// JoinPieces does nothing and returns false: there is no kernel for it.
func JoinPieces(*byte, []JoinPart, int) bool { return false }

// smallTilesOf returns nil: there are no kernels.
func smallTilesOf(int) []smallTile { return nil }
