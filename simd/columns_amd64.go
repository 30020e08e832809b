//go:build amd64 && !noasm

package simd

import "unsafe"

var columnFolds = map[string]ColumnFold{
	"f32.add": columnsAddF32AVX2, "f32.mul": columnsMulF32AVX2, "f32.squares": columnsSquaresF32AVX2,
	"f32.maximum": columnsMaxF32AVX2, "f32.minimum": columnsMinF32AVX2,
	"f32.zeros": columnsFloatZerosAVX2, "f32.any": columnsFloatAnyAVX2, "f32.all": columnsFloatAllAVX2,
	"i32.add": columnsAddAVX2, "i32.mul": columnsMulAVX2,
	"i32.zeros": columnsZerosAVX2, "i32.any": columnsAnyAVX2, "i32.all": columnsAllAVX2,
	"i32.maximum": columnsMaxI32AVX2, "i32.minimum": columnsMinI32AVX2,
	"u32.add": columnsAddAVX2, "u32.mul": columnsMulAVX2,
	"u32.zeros": columnsZerosAVX2, "u32.any": columnsAnyAVX2, "u32.all": columnsAllAVX2,
	"u32.maximum": columnsMaxU32AVX2, "u32.minimum": columnsMinU32AVX2,
}

// An ArrayFold is a ColumnFold of each of the adjacent arrays in x, of rows rows of n elements, from start on: it sets n elements of
// dst for each array. n is at least 8.
type ArrayFold func(dst, x *uint32, n, rows, arrays int, start uint32)

var arrayFolds = map[string]ArrayFold{
	"f32.add": arraysAddF32AVX2, "f32.mul": arraysMulF32AVX2, "f32.squares": arraysSquaresF32AVX2,
	"f32.maximum": arraysMaxF32AVX2, "f32.minimum": arraysMinF32AVX2,
	"f32.zeros": arraysFloatZerosAVX2, "f32.any": arraysFloatAnyAVX2, "f32.all": arraysFloatAllAVX2,
	"i32.add": arraysAddAVX2, "i32.mul": arraysMulAVX2,
	"i32.zeros": arraysZerosAVX2, "i32.any": arraysAnyAVX2, "i32.all": arraysAllAVX2,
	"i32.maximum": arraysMaxI32AVX2, "i32.minimum": arraysMinI32AVX2,
	"u32.add": arraysAddAVX2, "u32.mul": arraysMulAVX2,
	"u32.zeros": arraysZerosAVX2, "u32.any": arraysAnyAVX2, "u32.all": arraysAllAVX2,
	"u32.maximum": arraysMaxU32AVX2, "u32.minimum": arraysMinU32AVX2,
}

// FoldArrays returns the kernel for many arrays of a kernel of [FoldColumns], or nil.
func FoldArrays(name string) ArrayFold {
	if active < AVX2 {
		return nil
	}
	return arrayFolds[name]
}

// FoldColumns returns the kernel that combines two elements as the elementwise kernel of the given name
// does, adds squares ("f32.squares"), subtracts the number of elements that are 0 ("i32.zeros"), or combines the
// numbers 0 and 1 that say whether elements are not 0 ("i32.any", "i32.all"); nil if there is none. Rows are combined in their order. A call is not interrupted, so it should take few elements.
func FoldColumns(name string) ColumnFold {
	if active < AVX2 {
		return nil
	}
	return columnFolds[name]
}

// A ByteColumnFold combines each of n bytes of dst with the bytes in the same column of rows rows, which are stride bytes apart.
type ByteColumnFold func(dst, x *uint8, n, rows, stride int)

// FoldByteColumns returns the kernels for the maximum and the minimum of bytes; nil if there are none. n and rows are at least 1.
func FoldByteColumns() (maximum, minimum ByteColumnFold) {
	if active < AVX2 {
		return nil, nil
	}
	return byteColumnsMax, byteColumnsMin
}

func byteColumnsMax(dst, x *uint8, n, rows, stride int) {
	if n >= 32 {
		byteColumnsMaxAVX2(dst, x, n, rows, stride)
		return
	}
	eachByte(dst, x, n, rows, stride, func(a, b uint8) uint8 { return max(a, b) })
}

func byteColumnsMin(dst, x *uint8, n, rows, stride int) {
	if n >= 32 {
		byteColumnsMinAVX2(dst, x, n, rows, stride)
		return
	}
	eachByte(dst, x, n, rows, stride, func(a, b uint8) uint8 { return min(a, b) })
}

func eachByte(dst, x *uint8, n, rows, stride int, join func(a, b uint8) uint8) {
	to, from := unsafe.Slice(dst, n), unsafe.Slice(x, (rows-1)*stride+n)
	for r := range rows {
		for i, v := range from[r*stride:][:n] {
			to[i] = join(to[i], v)
		}
	}
}

// ColumnDeviations adds, for each of n columns of x, at least 1, the distances of the elements in rows rows, which are
// stride elements apart, from the mean of the column to sum, and their squares to squares. It needs AVX2, as FoldColumns does.
func ColumnDeviations(sum, squares, x, mean *float32, n, rows, stride int) {
	columnsDeviationsAVX2(sum, squares, x, mean, n, rows, stride)
}

// ColumnProducts adds, for each of n columns of x and y, at least 1, the products of the elements in rows rows, which are stride
// elements apart, to dst. It needs AVX2, as FoldColumns does.
func ColumnProducts(dst, x, y *float32, n, rows, stride int) {
	columnsProductsAVX2(dst, x, y, n, rows, stride)
}
