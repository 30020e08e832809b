//go:build js && !noasm

package simd

import (
	"unsafe"

	"github.com/rayo-go/rayo/gguf/block"
)

var int8SIMD128 = int8Kernels{columns: []int8Columns{
	block.Q4_0: {run: int8ColumnsAtPlace(placeInt8Q40), signed: false},
	block.Q8_0: {run: int8ColumnsAtPlace(placeInt8Q80), signed: true},
	block.Q4_1: {run: int8ColumnsAtPlace(placeInt8Q41), signed: false},
}}

func int8KernelsOf(l Level) int8Kernels {
	if l == SIMD128 {
		return int8SIMD128
	}
	return int8Kernels{}
}

// int8ColumnsAtPlace returns a kernel that computes four columns at a time. Columns that are left
// over are computed one by one, as four that are alike.
func int8ColumnsAtPlace(place uint32) int8ColumnsFunc {
	return func(dst *float32, x *int8, scales, sums *float32, quads *int32, src *byte, row, blocks, count int) {
		run := func(dst *float32, src *byte, row, count int) {
			c := begin(place)
			c.Pointers = [len(c.Pointers)]unsafe.Pointer{unsafe.Pointer(dst), unsafe.Pointer(x), unsafe.Pointer(scales), unsafe.Pointer(sums), unsafe.Pointer(quads), unsafe.Pointer(src)}
			c.Ints[0], c.Ints[1], c.Ints[2] = row, blocks, count
			host.Run()
		}
		whole := count &^ 3
		if whole > 0 {
			run(dst, src, row, whole)
		}
		for j := whole; j < count; j++ {
			run(&host.Call.Scratch[0], (*byte)(unsafe.Add(unsafe.Pointer(src), j*row)), 0, 4)
			*(*float32)(unsafe.Add(unsafe.Pointer(dst), 4*j)) = host.Call.Scratch[0]
		}
	}
}
