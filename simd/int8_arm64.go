//go:build arm64 && !noasm && !wazero

package simd

import (
	"github.com/klauspost/cpuid/v2"

	"github.com/rayo-go/rayo/gguf/block"
)

var int8LevelsNEON = []int8LevelsFunc{
	block.Q4_0:   int8LevelsQ4_0NEON,
	block.Q8_0:   int8LevelsQ8_0NEON,
	block.Q4_K:   int8LevelsQ4_KNEON,
	block.Q6_K:   int8LevelsQ6_KNEON,
	block.Q5_K:   int8LevelsQ5_KNEON,
	block.Q4_1:   int8LevelsQ4_1NEON,
	block.Q5_0:   int8LevelsQ5_0NEON,
	block.Q5_1:   int8LevelsQ5_1NEON,
	block.IQ4_NL: int8LevelsIQ4_NLNEON,
	block.IQ4_XS: int8LevelsIQ4_XSNEON,
	block.Q2_K:   int8LevelsQ2_KNEON,
	block.Q3_K:   int8LevelsQ3_KNEON,
	block.MXFP4:  int8LevelsMXFP4NEON,
}

// int8NEON is for all processors. It multiplies signed bytes to 16 bits, so that sums need no correction.
var int8NEON = int8Kernels{
	round: int8RoundNEON, pack: int8PackNEON, levels: int8LevelsNEON,
	dots: []int8Dots{
		block.Q4_0:   {int8Dot1Q4_0NEON, int8Dot4Q4_0NEON, true},
		block.Q8_0:   {int8Dot1Q8_0NEON, int8Dot4Q8_0NEON, true},
		block.Q4_K:   {int8Dot1Q4_KNEON, int8Dot4Q4_KNEON, true},
		block.Q6_K:   {int8Dot1Q6_KNEON, int8Dot4Q6_KNEON, true},
		block.Q5_K:   {int8Dot1Q5_KNEON, int8Dot4Q5_KNEON, true},
		block.Q4_1:   {int8Dot1Q4_1NEON, int8Dot4Q4_1NEON, true},
		block.Q5_0:   {int8Dot1Q5_0NEON, int8Dot4Q5_0NEON, true},
		block.Q5_1:   {int8Dot1Q5_1NEON, int8Dot4Q5_1NEON, true},
		block.IQ4_NL: {int8Dot1IQ4_NLNEON, int8Dot4IQ4_NLNEON, true},
		block.IQ4_XS: {int8Dot1IQ4_XSNEON, int8Dot4IQ4_XSNEON, true},
		block.Q2_K:   {int8Dot1Q2_KNEON, int8Dot4Q2_KNEON, true},
		block.Q3_K:   {int8Dot1Q3_KNEON, int8Dot4Q3_KNEON, true},
		block.MXFP4:  {int8Dot1MXFP4NEON, int8Dot4MXFP4NEON, true},
	},
	tiles: []int8Tiles{
		{32, 0, []int8TileFunc{int8Tile1Rows32NEON, int8Tile2Rows32NEON}, 0},
		{16, 0, []int8TileFunc{int8Tile1Rows16NEON, int8Tile2Rows16NEON}, 0},
	},
}

// int8SDOT is for processors with SDOT, which adds up products of four bytes.
var int8SDOT = int8Kernels{
	round: int8RoundNEON, pack: int8PackNEON, levels: int8LevelsNEON,
	dots: []int8Dots{
		block.Q4_0:   {int8Dot1Q4_0SDOT, int8Dot4Q4_0SDOT, true},
		block.Q8_0:   {int8Dot1Q8_0SDOT, int8Dot4Q8_0SDOT, true},
		block.Q4_K:   {int8Dot1Q4_KSDOT, int8Dot4Q4_KSDOT, true},
		block.Q6_K:   {int8Dot1Q6_KSDOT, int8Dot4Q6_KSDOT, true},
		block.Q5_K:   {int8Dot1Q5_KSDOT, int8Dot4Q5_KSDOT, true},
		block.Q4_1:   {int8Dot1Q4_1SDOT, int8Dot4Q4_1SDOT, true},
		block.Q5_0:   {int8Dot1Q5_0SDOT, int8Dot4Q5_0SDOT, true},
		block.Q5_1:   {int8Dot1Q5_1SDOT, int8Dot4Q5_1SDOT, true},
		block.IQ4_NL: {int8Dot1IQ4_NLSDOT, int8Dot4IQ4_NLSDOT, true},
		block.IQ4_XS: {int8Dot1IQ4_XSSDOT, int8Dot4IQ4_XSSDOT, true},
		block.Q2_K:   {int8Dot1Q2_KSDOT, int8Dot4Q2_KSDOT, true},
		block.Q3_K:   {int8Dot1Q3_KSDOT, int8Dot4Q3_KSDOT, true},
		block.MXFP4:  {int8Dot1MXFP4SDOT, int8Dot4MXFP4SDOT, true},
	},
	tiles: []int8Tiles{
		{32, 0, []int8TileFunc{int8Tile1Rows32SDOT, int8Tile2Rows32SDOT, int8Tile3Rows32SDOT}, 0},
		{16, 0, []int8TileFunc{int8Tile1Rows16SDOT, int8Tile2Rows16SDOT, int8Tile3Rows16SDOT}, 0},
	},
}

func int8KernelsOf(l Level) int8Kernels {
	switch {
	case l == NEON && cpuid.CPU.Supports(cpuid.ASIMDDP):
		return int8SDOT
	case l == NEON:
		return int8NEON
	}
	return int8Kernels{}
}
