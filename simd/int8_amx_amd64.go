//go:build linux && amd64 && !noasm && !wazero

package simd

import (
	"syscall"

	"github.com/klauspost/cpuid/v2"
)

// amxRows is the number of rows of [int8TileAMX].
const amxRows = 16

// int8TileAMX is an int8TileFunc for 16 rows and groups of 32, with packed levels that are signed bytes.
//
//go:noescape
func int8TileAMX(c *float32, cRow int, x *int8, scales, sums *float32, corrections *int32, stride int, w *byte, ws, wb *float32, groups int)

// amxTiles returns the tiles of AMX. It returns nil if the processor has none or if the Linux kernel does not permit this
// process to use them.
func amxTiles() []int8Tiles {
	const requestPermission, tileData = 0x1023, 18
	if !cpuid.CPU.Supports(cpuid.AMXTILE, cpuid.AMXINT8) {
		return nil
	}
	if _, _, e := syscall.RawSyscall(syscall.SYS_ARCH_PRCTL, requestPermission, tileData, 0); e != 0 {
		return nil
	}
	return []int8Tiles{{group: 32, tiles: []int8TileFunc{int8TileAMX}, rows: amxRows}}
}

// amxSwapped returns the kernels of AMX for few rows, under the conditions of amxTiles.
func amxSwapped() *int8Swapped {
	if amxTiles() == nil {
		return nil
	}
	return &int8Swapped{many: int8SwappedAMX, few: int8SwappedFewAMX, halves: int8HalfScales, interleave: int8Interleave}
}
