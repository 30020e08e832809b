//go:build amd64 && !noasm

package simd

import (
	"github.com/klauspost/cpuid/v2"

	"github.com/rayo-go/rayo/gguf/block"
)

var int8LevelsAVX2 = []int8LevelsFunc{
	block.Q4_0:   int8LevelsQ4_0AVX2,
	block.Q8_0:   int8LevelsQ8_0AVX2,
	block.Q4_K:   int8LevelsQ4_KAVX2,
	block.Q6_K:   int8LevelsQ6_KAVX2,
	block.Q5_K:   int8LevelsQ5_KAVX2,
	block.Q4_1:   int8LevelsQ4_1AVX2,
	block.Q5_0:   int8LevelsQ5_0AVX2,
	block.Q5_1:   int8LevelsQ5_1AVX2,
	block.IQ4_NL: int8LevelsIQ4_NLAVX2,
	block.IQ4_XS: int8LevelsIQ4_XSAVX2,
	block.Q2_K:   int8LevelsQ2_KAVX2,
	block.Q3_K:   int8LevelsQ3_KAVX2,
	block.MXFP4:  int8LevelsMXFP4AVX2,
}

var int8AVX2 = int8Kernels{
	round: int8RoundAVX2, pack: int8PackAVX2, levels: int8LevelsAVX2,
	dots: []int8Dots{
		block.Q4_0:   {int8Dot1Q4_0AVX2, int8Dot4Q4_0AVX2, false},
		block.Q8_0:   {int8Dot1Q8_0AVX2, int8Dot4Q8_0AVX2, true},
		block.Q4_K:   {int8Dot1Q4_KAVX2, int8Dot4Q4_KAVX2, false},
		block.Q6_K:   {int8Dot1Q6_KAVX2, int8Dot4Q6_KAVX2, false},
		block.Q5_K:   {int8Dot1Q5_KAVX2, int8Dot4Q5_KAVX2, false},
		block.Q4_1:   {int8Dot1Q4_1AVX2, int8Dot4Q4_1AVX2, false},
		block.Q5_0:   {int8Dot1Q5_0AVX2, int8Dot4Q5_0AVX2, false},
		block.Q5_1:   {int8Dot1Q5_1AVX2, int8Dot4Q5_1AVX2, false},
		block.IQ4_NL: {int8Dot1IQ4_NLAVX2, int8Dot4IQ4_NLAVX2, true},
		block.IQ4_XS: {int8Dot1IQ4_XSAVX2, int8Dot4IQ4_XSAVX2, true},
		block.Q2_K:   {int8Dot1Q2_KAVX2, int8Dot4Q2_KAVX2, false},
		block.Q3_K:   {int8Dot1Q3_KAVX2, int8Dot4Q3_KAVX2, false},
		block.MXFP4:  {int8Dot1MXFP4AVX2, int8Dot4MXFP4AVX2, false},
	},
	tiles: []int8Tiles{
		{32, 16, []int8TileFunc{int8Tile1Small32AVX2, int8Tile2Small32AVX2, int8Tile3Small32AVX2}},
		{16, 32, []int8TileFunc{int8Tile1Small16AVX2, int8Tile2Small16AVX2, int8Tile3Small16AVX2}},
		{32, 0, []int8TileFunc{int8Tile1Signed32AVX2, int8Tile2Signed32AVX2}},
		{16, 0, []int8TileFunc{int8Tile1Signed16AVX2, int8Tile2Signed16AVX2}},
	},
}

// int8VNNI is for AVX-512 with VNNI, which multiplies unsigned bytes without a limit.
var int8VNNI = int8Kernels{
	round: int8RoundAVX2, pack: int8PackAVX2, levels: int8LevelsAVX2, signedOffset: 128,
	dots: []int8Dots{
		block.Q4_0:   {int8Dot1Q4_0VNNI, int8Dot4Q4_0VNNI, false},
		block.Q8_0:   {int8Dot1Q8_0VNNI, int8Dot4Q8_0VNNI, true},
		block.Q4_K:   {int8Dot1Q4_KVNNI, int8Dot4Q4_KVNNI, false},
		block.Q6_K:   {int8Dot1Q6_KVNNI, int8Dot4Q6_KVNNI, false},
		block.Q5_K:   {int8Dot1Q5_KVNNI, int8Dot4Q5_KVNNI, false},
		block.Q4_1:   {int8Dot1Q4_1VNNI, int8Dot4Q4_1VNNI, false},
		block.Q5_0:   {int8Dot1Q5_0VNNI, int8Dot4Q5_0VNNI, false},
		block.Q5_1:   {int8Dot1Q5_1VNNI, int8Dot4Q5_1VNNI, false},
		block.IQ4_NL: {int8Dot1IQ4_NLVNNI, int8Dot4IQ4_NLVNNI, true},
		block.IQ4_XS: {int8Dot1IQ4_XSVNNI, int8Dot4IQ4_XSVNNI, true},
		block.Q2_K:   {int8Dot1Q2_KVNNI, int8Dot4Q2_KVNNI, false},
		block.Q3_K:   {int8Dot1Q3_KVNNI, int8Dot4Q3_KVNNI, false},
		block.MXFP4:  {int8Dot1MXFP4VNNI, int8Dot4MXFP4VNNI, false},
	},
	tiles: []int8Tiles{
		{32, anyCode, []int8TileFunc{int8Tile1Bytes32VNNI, int8Tile2Bytes32VNNI, int8Tile3Bytes32VNNI}},
		{16, anyCode, []int8TileFunc{int8Tile1Bytes16VNNI, int8Tile2Bytes16VNNI, int8Tile3Bytes16VNNI}},
	},
}

// int8KernelsOf returns the kernels of a level. Processors with AVX-512 that lack VNNI use
// those of AVX2.
func int8KernelsOf(l Level) int8Kernels {
	switch {
	case l == AVX512 && cpuid.CPU.Supports(cpuid.AVX512VNNI):
		return int8VNNI
	case l == AVX512 || l == AVX2:
		return int8AVX2
	}
	return int8Kernels{}
}
