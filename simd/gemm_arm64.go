//go:build arm64 && !noasm && !wazero

package simd

var gemmNEON = gemmKernels{
	rows: 7, cols: 12, wholePanels: true,
	tile: []tileFunc{
		gemmTile1NEON, gemmTile2NEON, gemmTile3NEON, gemmTile4NEON, gemmTile5NEON, gemmTile6NEON, gemmTile7NEON,
	},
	lanes: 4, transpose: gemmTransposeGeneric,
	rowsFew: []rowsFunc{gemmRows1NEON},
	dots:    []dotsFunc{gemmDots1NEON},
	convRow: convRowNEON,
}

func gemmKernelsOf(l Level) *gemmKernels {
	if l == NEON {
		return &gemmNEON
	}
	return &gemmGeneric
}

func mostRowsGoes() int { return 1 }
