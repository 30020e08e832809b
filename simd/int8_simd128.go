//go:build (js || wazero) && !noasm

package simd

import (
	"unsafe"

	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/op"
)

func int8KernelsOf(l Level) int8Kernels {
	if hasArrays(l) {
		return int8Kernels{columns: []int8Columns{
			block.Q4_0: {run: int8ColumnsAtPlace(block.Q4_0, placeInt8Q40), signed: false},
			block.Q8_0: {run: int8ColumnsAtPlace(block.Q8_0, placeInt8Q80), signed: true},
			block.Q4_1: {run: int8ColumnsAtPlace(block.Q4_1, placeInt8Q41), signed: false},
		}}
	}
	return int8Kernels{}
}

// int8ColumnsAtPlace returns the kernel of a format at an index in the table of functions. It computes four
// columns at a time. Each column of the tail is computed as four equal columns.
func int8ColumnsAtPlace(f block.Format, place uint32) int8ColumnsFunc {
	return func(dst *float32, x *int8, scales, sums *float32, quads *int32, src *byte, row, blocks, count int) {
		run := func(dst *float32, src *byte, row, count, rows int) {
			c := arrays.Begin(place)
			c.Write(0, unsafe.Pointer(dst), 4*count)
			n := blocks * f.Elements()
			c.Read(1, unsafe.Pointer(x), n)
			c.Read(2, unsafe.Pointer(scales), 4*n/op.Int8Group)
			c.Read(3, unsafe.Pointer(sums), 4*n/op.Int8Group)
			c.Read(4, unsafe.Pointer(quads), n)
			c.Ints[0] = c.ReadRows(5, unsafe.Pointer(src), rows, blocks*f.Bytes(), row)
			if rows == 1 {
				c.Ints[0] = 0
			}
			c.Ints[1], c.Ints[2] = blocks, count
			c.Run()
		}
		whole := count &^ 3
		if whole > 0 {
			run(dst, src, row, whole, whole)
		}
		if whole == count {
			return
		}
		alike := new([4]float32)
		for j := whole; j < count; j++ {
			run(&alike[0], (*byte)(unsafe.Add(unsafe.Pointer(src), j*row)), 0, len(alike), 1)
			*(*float32)(unsafe.Add(unsafe.Pointer(dst), 4*j)) = alike[0]
		}
	}
}
