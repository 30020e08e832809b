//go:build amd64 && !noasm && !wazero

package simd

import (
	"slices"
	"sync"

	"github.com/klauspost/cpuid/v2"

	"github.com/rayo-go/rayo/gguf/block"
)

var int8LevelsAVX2 = []int8LevelsFunc{
	block.Q4_0:    int8LevelsQ4_0AVX2,
	block.Q8_0:    int8LevelsQ8_0AVX2,
	block.Q4_K:    int8LevelsQ4_KAVX2,
	block.Q6_K:    int8LevelsQ6_KAVX2,
	block.Q5_K:    int8LevelsQ5_KAVX2,
	block.Q4_1:    int8LevelsQ4_1AVX2,
	block.Q5_0:    int8LevelsQ5_0AVX2,
	block.Q5_1:    int8LevelsQ5_1AVX2,
	block.IQ4_NL:  int8LevelsIQ4_NLAVX2,
	block.IQ4_XS:  int8LevelsIQ4_XSAVX2,
	block.Q2_K:    int8LevelsQ2_KAVX2,
	block.Q3_K:    int8LevelsQ3_KAVX2,
	block.MXFP4:   int8LevelsMXFP4AVX2,
	block.TQ1_0:   int8LevelsTQ1_0AVX2,
	block.TQ2_0:   int8LevelsTQ2_0AVX2,
	block.NVFP4:   int8LevelsNVFP4AVX2,
	block.Q1_0:    int8LevelsQ1_0AVX2,
	block.Q2_0:    int8LevelsQ2_0AVX2,
	block.IQ1_S:   int8LevelsIQ1_SAVX2,
	block.IQ1_M:   int8LevelsIQ1_MAVX2,
	block.IQ2_XXS: int8LevelsIQ2_XXSAVX2,
	block.IQ2_XS:  int8LevelsIQ2_XSAVX2,
	block.IQ2_S:   int8LevelsIQ2_SAVX2,
	block.IQ3_XXS: int8LevelsIQ3_XXSAVX2,
	block.IQ3_S:   int8LevelsIQ3_SAVX2,
}

var int8AVX2 = int8Kernels{
	prepare: fillGrids, round: int8RoundAVX2, pack: int8PackAVX2, levels: int8LevelsAVX2,
	dots: []int8Dots{
		block.Q4_0:    {int8Dot1Q4_0AVX2, int8Dot4Q4_0AVX2, false},
		block.Q8_0:    {int8Dot1Q8_0AVX2, int8Dot4Q8_0AVX2, true},
		block.Q4_K:    {int8Dot1Q4_KAVX2, int8Dot4Q4_KAVX2, false},
		block.Q6_K:    {int8Dot1Q6_KAVX2, int8Dot4Q6_KAVX2, false},
		block.Q5_K:    {int8Dot1Q5_KAVX2, int8Dot4Q5_KAVX2, false},
		block.Q4_1:    {int8Dot1Q4_1AVX2, int8Dot4Q4_1AVX2, false},
		block.Q5_0:    {int8Dot1Q5_0AVX2, int8Dot4Q5_0AVX2, false},
		block.Q5_1:    {int8Dot1Q5_1AVX2, int8Dot4Q5_1AVX2, false},
		block.IQ4_NL:  {int8Dot1IQ4_NLAVX2, int8Dot4IQ4_NLAVX2, true},
		block.IQ4_XS:  {int8Dot1IQ4_XSAVX2, int8Dot4IQ4_XSAVX2, true},
		block.Q2_K:    {int8Dot1Q2_KAVX2, int8Dot4Q2_KAVX2, false},
		block.Q3_K:    {int8Dot1Q3_KAVX2, int8Dot4Q3_KAVX2, false},
		block.MXFP4:   {int8Dot1MXFP4AVX2, int8Dot4MXFP4AVX2, false},
		block.TQ1_0:   {int8Dot1TQ1_0AVX2, int8Dot4TQ1_0AVX2, false},
		block.TQ2_0:   {int8Dot1TQ2_0AVX2, int8Dot4TQ2_0AVX2, false},
		block.NVFP4:   {int8Dot1NVFP4AVX2, int8Dot4NVFP4AVX2, false},
		block.Q1_0:    {int8Dot1Q1_0AVX2, int8Dot4Q1_0AVX2, false},
		block.Q2_0:    {int8Dot1Q2_0AVX2, int8Dot4Q2_0AVX2, false},
		block.IQ1_S:   {int8Dot1IQ1_SAVX2, int8Dot4IQ1_SAVX2, false},
		block.IQ1_M:   {int8Dot1IQ1_MAVX2, int8Dot4IQ1_MAVX2, false},
		block.IQ2_XXS: {int8Dot1IQ2_XXSAVX2, int8Dot4IQ2_XXSAVX2, true},
		block.IQ2_XS:  {int8Dot1IQ2_XSAVX2, int8Dot4IQ2_XSAVX2, true},
		block.IQ2_S:   {int8Dot1IQ2_SAVX2, int8Dot4IQ2_SAVX2, true},
		block.IQ3_XXS: {int8Dot1IQ3_XXSAVX2, int8Dot4IQ3_XXSAVX2, true},
		block.IQ3_S:   {int8Dot1IQ3_SAVX2, int8Dot4IQ3_SAVX2, true},
	},
	columnRows: 3,
	columns: []int8Columns{
		block.Q4_0:   {int8ColumnsQ4_0AVX2, false, inPairs, 0},
		block.Q8_0:   {int8ColumnsQ8_0AVX2, true, inRuns, 0},
		block.Q4_K:   {int8ColumnsQ4_KAVX2, false, inPairs, 0},
		block.Q6_K:   {int8ColumnsQ6_KAVX2, false, inRuns, 0},
		block.Q5_K:   {int8ColumnsQ5_KAVX2, false, inPairs, 0},
		block.Q4_1:   {int8ColumnsQ4_1AVX2, false, inPairs, 0},
		block.Q5_0:   {int8ColumnsQ5_0AVX2, false, inPairs, 0},
		block.Q5_1:   {int8ColumnsQ5_1AVX2, false, inPairs, 0},
		block.IQ4_NL: {int8ColumnsIQ4_NLAVX2, true, inPairsOfSizes, 0},
		block.IQ4_XS: {int8ColumnsIQ4_XSAVX2, true, inPairsOfSizes, 0},
		block.Q2_K:   {int8ColumnsQ2_KAVX2, false, inRuns, 0},
		block.Q3_K:   {int8ColumnsQ3_KAVX2, false, inRuns, 0},
		block.MXFP4:  {int8ColumnsMXFP4AVX2, false, inPairs, 0},
		block.TQ1_0:  {int8ColumnsTQ1_0AVX2, false, inRuns, 0},
		block.TQ2_0:  {int8ColumnsTQ2_0AVX2, false, inPairs, 0},
		block.NVFP4:  {int8ColumnsNVFP4AVX2, false, inRuns, 0},
		block.Q1_0:   {int8ColumnsQ1_0AVX2, false, inPairs, 0},
		block.Q2_0:   {int8ColumnsQ2_0AVX2, false, inRuns, 0},
	},
	tiles: []int8Tiles{
		{32, 16, []int8TileFunc{int8Tile1Small32AVX2, int8Tile2Small32AVX2, int8Tile3Small32AVX2}, 0},
		{16, 32, []int8TileFunc{int8Tile1Small16AVX2, int8Tile2Small16AVX2, int8Tile3Small16AVX2}, 0},
		{32, 129, []int8TileFunc{int8Tile1Medium32AVX2, int8Tile2Medium32AVX2, int8Tile3Medium32AVX2}, 0},
		{16, 129, []int8TileFunc{int8Tile1Medium16AVX2, int8Tile2Medium16AVX2, int8Tile3Medium16AVX2}, 0},
		{32, 0, []int8TileFunc{int8Tile1Signed32AVX2, int8Tile2Signed32AVX2}, 0},
	},
}

// int8VNNI is for AVX-512 with VNNI, whose products of unsigned and signed bytes do not saturate.
var int8VNNI = int8Kernels{
	prepare: fillGrids, round: int8RoundAVX2, pack: int8PackAVX2, levels: int8LevelsAVX2, signedOffset: 128,
	dots: []int8Dots{
		block.Q4_0:    {int8Dot1Q4_0VNNI, int8Dot4Q4_0VNNI, false},
		block.Q8_0:    {int8Dot1Q8_0VNNI, int8Dot4Q8_0VNNI, true},
		block.Q4_K:    {int8Dot1Q4_KVNNI, int8Dot4Q4_KVNNI, false},
		block.Q6_K:    {int8Dot1Q6_KVNNI, int8Dot4Q6_KVNNI, false},
		block.Q5_K:    {int8Dot1Q5_KVNNI, int8Dot4Q5_KVNNI, false},
		block.Q4_1:    {int8Dot1Q4_1VNNI, int8Dot4Q4_1VNNI, false},
		block.Q5_0:    {int8Dot1Q5_0VNNI, int8Dot4Q5_0VNNI, false},
		block.Q5_1:    {int8Dot1Q5_1VNNI, int8Dot4Q5_1VNNI, false},
		block.IQ4_NL:  {int8Dot1IQ4_NLVNNI, int8Dot4IQ4_NLVNNI, true},
		block.IQ4_XS:  {int8Dot1IQ4_XSVNNI, int8Dot4IQ4_XSVNNI, true},
		block.Q2_K:    {int8Dot1Q2_KVNNI, int8Dot4Q2_KVNNI, false},
		block.Q3_K:    {int8Dot1Q3_KVNNI, int8Dot4Q3_KVNNI, false},
		block.MXFP4:   {int8Dot1MXFP4VNNI, int8Dot4MXFP4VNNI, false},
		block.TQ1_0:   {int8Dot1TQ1_0VNNI, int8Dot4TQ1_0VNNI, false},
		block.TQ2_0:   {int8Dot1TQ2_0VNNI, int8Dot4TQ2_0VNNI, false},
		block.NVFP4:   {int8Dot1NVFP4VNNI, int8Dot4NVFP4VNNI, false},
		block.Q1_0:    {int8Dot1Q1_0VNNI, int8Dot4Q1_0VNNI, false},
		block.Q2_0:    {int8Dot1Q2_0VNNI, int8Dot4Q2_0VNNI, false},
		block.IQ1_S:   {int8Dot1IQ1_SVNNI, int8Dot4IQ1_SVNNI, false},
		block.IQ1_M:   {int8Dot1IQ1_MVNNI, int8Dot4IQ1_MVNNI, false},
		block.IQ2_XXS: {int8Dot1IQ2_XXSVNNI, int8Dot4IQ2_XXSVNNI, true},
		block.IQ2_XS:  {int8Dot1IQ2_XSVNNI, int8Dot4IQ2_XSVNNI, true},
		block.IQ2_S:   {int8Dot1IQ2_SVNNI, int8Dot4IQ2_SVNNI, true},
		block.IQ3_XXS: {int8Dot1IQ3_XXSVNNI, int8Dot4IQ3_XXSVNNI, true},
		block.IQ3_S:   {int8Dot1IQ3_SVNNI, int8Dot4IQ3_SVNNI, true},
	},
	// For these formats and one row the kernels of AVX2 are faster than those of VNNI, which need a call
	// for each column.
	columnRows: 1,
	columns: columnsOf(int8AVX2.columns, block.Q4_0, block.Q8_0, block.Q4_1, block.Q5_1, block.Q2_K, block.Q3_K, block.Q5_K, block.Q6_K,
		block.IQ4_XS, block.MXFP4, block.Q1_0),
	tiles: []int8Tiles{
		{32, anyCode, []int8TileFunc{int8Tile1Bytes32VNNI, int8Tile2Bytes32VNNI, int8Tile3Bytes32VNNI, int8Tile4Bytes32VNNI}, 0},
		{16, anyCode, []int8TileFunc{int8Tile1Bytes16VNNI, int8Tile2Bytes16VNNI, int8Tile3Bytes16VNNI, int8Tile4Bytes16VNNI}, 0},
	},
}

// int8VBMI returns int8VNNI with kernels of 512 bits for one row, which need AVX-512 VBMI and are faster for up to four
// rows, one after the other, than the kernels of four rows. It has the tiles of AMX where
// the processor has AMX and the system permits it.
func int8VBMI() int8Kernels {
	k := int8VNNI
	k.columns, k.columnRows = slices.Clone(k.columns), 4
	for f, c := range map[block.Format]int8Columns{
		block.Q4_0:   {int8ColumnsQ4_0AVX512, false, inLanes, maxStreams},
		block.Q4_1:   {int8ColumnsQ4_1AVX512, false, inLanes, maxStreams},
		block.Q5_0:   {int8ColumnsQ5_0AVX512, false, inLanes, maxStreams},
		block.Q5_1:   {int8ColumnsQ5_1AVX512, false, inLanes, maxStreams},
		block.IQ4_NL: {int8ColumnsIQ4_NLAVX512, false, inLanes, maxStreams},
		block.IQ4_XS: {int8ColumnsIQ4_XSAVX512, false, inLanes, maxStreams},
		block.MXFP4:  {int8ColumnsMXFP4AVX512, false, inLanes, maxStreams},
		block.NVFP4:  {int8ColumnsNVFP4AVX512, false, inEighths, maxStreams},
		block.Q4_K:   {int8ColumnsQ4_KAVX512, false, inChunks, maxStreams},
		block.Q5_K:   {int8ColumnsQ5_KAVX512, false, inChunks, maxStreams},
		block.Q6_K:   {int8ColumnsQ6_KAVX512, false, nil, maxStreams},
		block.Q8_0:   {int8ColumnsQ8_0AVX512, false, inRowOrder, maxStreams},
		block.Q2_K:   {int8ColumnsQ2_KAVX512, false, inHalves, maxStreams},
		block.TQ1_0:  {int8ColumnsTQ1_0AVX512, false, withDigits, maxStreams},
		block.TQ2_0:  {int8ColumnsTQ2_0AVX512, false, inHalves, maxStreams},
	} {
		k.columns[f] = c
	}
	k.tiles = append(amxTiles(), k.tiles...)
	k.swapped, k.levels = amxSwapped(), slices.Clone(k.levels)
	k.levels[block.Q4_0], k.levels[block.Q8_0] = int8LevelsQ4_0AVX512, int8LevelsQ8_0AVX512
	return k
}

// columnsOf returns the kernels in all for some formats, indexed by format.
func columnsOf(all []int8Columns, formats ...block.Format) []int8Columns {
	some := make([]int8Columns, len(all))
	for _, f := range formats {
		some[f] = all[f]
	}
	return some
}

// int8KernelsOf returns the kernels of a level. Processors with AVX-512 that lack VNNI use
// those of AVX2.
func int8KernelsOf(l Level) int8Kernels {
	switch {
	case l == AVX512 && cpuid.CPU.Supports(cpuid.AVX512VNNI, cpuid.AVX512VBMI):
		return int8VBMI()
	case l == AVX512 && cpuid.CPU.Supports(cpuid.AVX512VNNI):
		return int8VNNI
	case l == AVX512 || l == AVX2:
		return int8AVX2
	}
	return int8Kernels{}
}

// The codebooks in the form that kernels read: the levels of each row, one row after the other. For
// formats that add an eighth to levels, they hold eight times the levels. [fillGrids] fills them.
var (
	int8GridIQ1_S   [2048 * 8]byte // also for IQ1_M
	int8GridIQ2_XXS [256 * 8]byte
	int8GridIQ2_XS  [512 * 8]byte
	int8GridIQ2_S   [1024 * 8]byte
	int8GridIQ3_XXS [256 * 4]byte
	int8GridIQ3_S   [512 * 4]byte
)

// fillGrids fills the codebooks at the first use, so that programs without such blocks do not wait for it.
var fillGrids = sync.OnceFunc(func() {
	for f, table := range map[block.Format][]byte{
		block.IQ1_S: int8GridIQ1_S[:], block.IQ2_XXS: int8GridIQ2_XXS[:], block.IQ2_XS: int8GridIQ2_XS[:],
		block.IQ2_S: int8GridIQ2_S[:], block.IQ3_XXS: int8GridIQ3_XXS[:], block.IQ3_S: int8GridIQ3_S[:],
	} {
		l := &f.Layout().Level
		for i, v := range l.Grid.Levels() {
			if l.Shift != nil {
				v = 8*v + 8
			}
			table[i] = byte(v)
		}
	}
})
