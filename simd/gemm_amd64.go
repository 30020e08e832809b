//go:build amd64 && !noasm

package simd

var gemmAVX512 = gemmKernels{
	rows: 14, cols: 32,
	tile: []tileFunc{
		gemmTile1AVX512, gemmTile2AVX512, gemmTile3AVX512, gemmTile4AVX512, gemmTile5AVX512,
		gemmTile6AVX512, gemmTile7AVX512, gemmTile8AVX512, gemmTile9AVX512, gemmTile10AVX512,
		gemmTile11AVX512, gemmTile12AVX512, gemmTile13AVX512, gemmTile14AVX512,
	},
	lanes: 16, transpose: gemmTransposeAVX512,
	copyPanels: gemmCopyPanelsAVX512,
}

var gemmAVX2 = gemmKernels{
	rows: 6, cols: 16,
	tile: []tileFunc{
		gemmTile1AVX2, gemmTile2AVX2, gemmTile3AVX2, gemmTile4AVX2, gemmTile5AVX2, gemmTile6AVX2,
	},
	lanes: 8, transpose: gemmTransposeAVX2,
	copyPanels: gemmCopyPanelsAVX2,
}

func gemmKernelsOf(l Level) *gemmKernels {
	switch l {
	case AVX512:
		return &gemmAVX512
	case AVX2:
		return &gemmAVX2
	}
	return &gemmGeneric
}
