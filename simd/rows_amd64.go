//go:build amd64 && !noasm && !wazero

package simd

var (
	rowsAVX512 = rowKernels{
		expStore: rowsExpStoreAVX512, expStoreRows: rowsExpStoreRowsAVX512,
		expSum: rowsExpSumAVX512, expSumRows: rowsExpSumRowsAVX512,
		affine: rowsAffineAVX512, affineRows: rowsAffineRowsAVX512,
		ropeHalves: ropeHalvesAVX512, ropePairs: ropePairsAVX512,
		cumsum: rowsCumsumAVX512,
		fetch:  rowsFetchAVX512,
	}
	rowsAVX2 = rowKernels{
		expStore: rowsExpStoreAVX2, expStoreRows: rowsExpStoreRowsAVX2,
		expSum: rowsExpSumAVX2, expSumRows: rowsExpSumRowsAVX2,
		affine: rowsAffineAVX2, affineRows: rowsAffineRowsAVX2,
		ropeHalves: ropeHalvesAVX2, ropePairs: ropePairsAVX2,
		cumsum: rowsCumsumAVX2,
		fetch:  rowsFetchAVX2,
	}
)

func rowKernelsOf(l Level) *rowKernels {
	switch l {
	case AVX512:
		return &rowsAVX512
	case AVX2:
		return &rowsAVX2
	}
	return &rowsGeneric
}
