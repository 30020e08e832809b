//go:build arm64 && !noasm

package simd

var rowsNEON = rowKernels{expStore: rowsExpStoreNEON, expSum: rowsExpSumNEON, affine: rowsAffineNEON, fetch: rowsFetchNEON,
	ropeHalves: ropeHalvesNEON, ropePairs: ropePairsNEON}

func rowKernelsOf(l Level) *rowKernels {
	if l == NEON {
		return &rowsNEON
	}
	return &rowsGeneric
}
