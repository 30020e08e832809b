//go:build amd64 && !noasm && !wazero

package simd

var reduceAVX512 = reduceKernels{
	block: [numKinds]func(x, y *float32, n int) float32{
		kindSum:        reduceSumAVX512,
		kindSumAbs:     reduceSumAbsAVX512,
		kindSumSquares: reduceSumSquaresAVX512,
		kindDot:        reduceDotAVX512,
		kindMax:        reduceMaxAVX512,
		kindMin:        reduceMinAVX512,
		kindMaxAbs:     reduceMaxAbsAVX512,
	},
	rows: [numKinds]func(dst, x, y *float32, rows, cols int){
		kindSum:        reduceSumRowsAVX512,
		kindSumAbs:     reduceSumAbsRowsAVX512,
		kindSumSquares: reduceSumSquaresRowsAVX512,
		kindDot:        reduceDotRowsAVX512,
		kindMax:        reduceMaxRowsAVX512,
		kindMin:        reduceMinRowsAVX512,
		kindMaxAbs:     reduceMaxAbsRowsAVX512,
	},
	dotEach:        reduceDotEachAVX512,
	deviations:     reduceDeviationsAVX512,
	deviationsRows: reduceDeviationsRowsAVX512,
	index:          reduceIndexAVX512,
	indexRows:      reduceIndexRowsAVX512,
}

var reduceAVX2 = reduceKernels{
	block: [numKinds]func(x, y *float32, n int) float32{
		kindSum:        reduceSumAVX2,
		kindSumAbs:     reduceSumAbsAVX2,
		kindSumSquares: reduceSumSquaresAVX2,
		kindDot:        reduceDotAVX2,
		kindMax:        reduceMaxAVX2,
		kindMin:        reduceMinAVX2,
		kindMaxAbs:     reduceMaxAbsAVX2,
	},
	rows: [numKinds]func(dst, x, y *float32, rows, cols int){
		kindSum:        reduceSumRowsAVX2,
		kindSumAbs:     reduceSumAbsRowsAVX2,
		kindSumSquares: reduceSumSquaresRowsAVX2,
		kindDot:        reduceDotRowsAVX2,
		kindMax:        reduceMaxRowsAVX2,
		kindMin:        reduceMinRowsAVX2,
		kindMaxAbs:     reduceMaxAbsRowsAVX2,
	},
	dotEach:        reduceDotEachAVX2,
	deviations:     reduceDeviationsAVX2,
	deviationsRows: reduceDeviationsRowsAVX2,
	index:          reduceIndexAVX2,
	indexRows:      reduceIndexRowsAVX2,
}

func reduceKernelsOf(l Level) *reduceKernels {
	switch l {
	case AVX512:
		return &reduceAVX512
	case AVX2:
		return &reduceAVX2
	}
	return reduceGeneric()
}

// maxAbsOf returns a kernel of reduceKernelsOf.
func maxAbsOf(l Level) func(x, y *float32, n int) float32 {
	switch l {
	case AVX512:
		return reduceMaxAbsAVX512
	case AVX2:
		return reduceMaxAbsAVX2
	}
	return reduceMaxAbsGeneric
}
