//go:build arm64 && !noasm && !wazero

package simd

var reduceNEON = reduceKernels{
	block: [numKinds]func(x, y *float32, n int) float32{
		kindSum:        reduceSumNEON,
		kindSumAbs:     reduceSumAbsNEON,
		kindSumSquares: reduceSumSquaresNEON,
		kindDot:        reduceDotNEON,
		kindMax:        reduceMaxNEON,
		kindMin:        reduceMinNEON,
		kindMaxAbs:     reduceMaxAbsNEON,
	},
	rows: [numKinds]func(dst, x, y *float32, rows, cols int){
		kindSum:        reduceSumRowsNEON,
		kindSumAbs:     reduceSumAbsRowsNEON,
		kindSumSquares: reduceSumSquaresRowsNEON,
		kindDot:        reduceDotRowsNEON,
		kindMax:        reduceMaxRowsNEON,
		kindMin:        reduceMinRowsNEON,
		kindMaxAbs:     reduceMaxAbsRowsNEON,
	},
	dotEach:        reduceDotEachNEON,
	deviations:     reduceDeviationsNEON,
	deviationsRows: reduceDeviationsRowsNEON,
	index:          reduceIndexNEON,
	indexRows:      reduceIndexRowsNEON,
}

func reduceKernelsOf(l Level) *reduceKernels {
	if l == NEON {
		return &reduceNEON
	}
	return reduceGeneric()
}

// maxAbsOf returns a kernel of reduceKernelsOf.
func maxAbsOf(l Level) func(x, y *float32, n int) float32 {
	if l == NEON {
		return reduceMaxAbsNEON
	}
	return reduceMaxAbsGeneric
}
