//go:build amd64 && !noasm

package simd

var (
	rowsAVX512 = rowKernels{expStore: rowsExpStoreAVX512, expSum: rowsExpSumAVX512, affine: rowsAffineAVX512, fetch: rowsFetchAVX512,
		ropeHalves: ropeHalvesAVX512, ropePairs: ropePairsAVX512}
	rowsAVX2 = rowKernels{expStore: rowsExpStoreAVX2, expSum: rowsExpSumAVX2, affine: rowsAffineAVX2, fetch: rowsFetchAVX2,
		ropeHalves: ropeHalvesAVX2, ropePairs: ropePairsAVX2}
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
