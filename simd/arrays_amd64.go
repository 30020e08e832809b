//go:build amd64 && !noasm

package simd

var sortAVX2 = sortKernels{
	flip: sortFlipAVX2, floatKeys: sortFloatKeysAVX2, floatBits: sortFloatBitsAVX2,
	partition: sortPartitionAVX2,
	network:   [3]func(*uint32){sort32AVX2, sort64AVX2, sort128AVX2}, base: 128,
}

var sortAVX512 = sortKernels{
	flip: sortFlipAVX2, floatKeys: sortFloatKeysAVX2, floatBits: sortFloatBitsAVX2,
	partition: sortPartitionAVX2, split: sortSplitAVX512, inward: sortPartitionAVX512, count: sortCountAVX512,
	divideWords: sortDivideWordsAVX512, divideFloats: sortDivideFloatsAVX512, sample: sortSampleAVX512,
	network: [3]func(*uint32){sort32AVX2, sort64AVX2, sort128AVX2}, base: 256,
	masked: [4]func(dst, src *uint32, n int){sort64AVX512, sort128AVX512, sort192AVX512, sort256AVX512},
}

// sortKernelsOf returns the kernels of a level, or nil.
func sortKernelsOf(l Level) *sortKernels {
	if l >= AVX512 {
		return &sortAVX512
	}
	if l >= AVX2 {
		return &sortAVX2
	}
	return nil
}

func gatherShortRowsOf(l Level) func(dst, x *byte, ids *int32, n, extent, size int) int {
	if l >= AVX2 {
		return gatherRowsAVX2
	}
	return nil
}

func gatherWordsOf(l Level) func(dst, x *uint32, ids *int32, n, extent int, missing uint32) {
	if l >= AVX2 {
		return gatherWordsAVX2
	}
	return nil
}

var wordFoldsAVX2 = wordFolds{
	fold: map[string]RowFold{
		"i32.add": foldAddAVX2, "u32.add": foldAddAVX2, "i32.mul": foldMulAVX2, "u32.mul": foldMulAVX2, "f32.mul": foldMulF32AVX2,
		"i32.maximum": foldMaxI32AVX2, "i32.minimum": foldMinI32AVX2,
		"u32.maximum": foldMaxU32AVX2, "u32.minimum": foldMinU32AVX2,
	},
	zeros: foldZerosAVX2, floatZeros: foldFloatZerosAVX2, index: indexWordAVX2, bytes: nonzeroBytesAVX2,
	scan: scanAddAVX2, scanShortRows: scanShortRowsAVX2,
}

func wordFoldsOf(l Level) *wordFolds {
	if l >= AVX2 {
		return &wordFoldsAVX2
	}
	return new(wordFolds)
}
