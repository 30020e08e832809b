//go:build arm64 && !noasm && !wazero

package simd

var (
	rowsNEON = rowKernels{
		expStore: rowsExpStoreNEON, expStoreRows: rowsExpStoreRowsNEON,
		expSum: rowsExpSumNEON, expSumRows: rowsExpSumRowsNEON,
		affine: rowsAffineNEON, affineRows: rowsAffineRowsNEON,
		ropeHalves: ropeHalvesNEON, ropePairs: ropePairsNEON,
		cumsum: rowsCumsumGeneric,
		fetch:  rowsFetchNEON,
	}
)

func rowKernelsOf(l Level) *rowKernels {
	if l == NEON {
		return &rowsNEON
	}
	return &rowsGeneric
}
