//go:build amd64 && !noasm

package simd

var mapRowsAVX512 = map[string]MapRowsFunc{
	"add": rowsAddF32RowsAVX512, "code.add": rowsAddF32RowsAVX512, "code.add.vs": rowsAddF32SingleAVX512,
	"sub": rowsSubF32RowsAVX512, "code.sub": rowsSubF32RowsAVX512, "code.sub.vs": rowsSubF32SingleAVX512,
	"mul": rowsMulF32RowsAVX512, "code.mul": rowsMulF32RowsAVX512, "code.mul.vs": rowsMulF32SingleAVX512,
	"i32.add": rowsAddI32RowsAVX512, "i32.add.vs": rowsAddI32SingleAVX512,
	"i32.sub": rowsSubI32RowsAVX512, "i32.sub.vs": rowsSubI32SingleAVX512,
	"i32.mul": rowsMulI32RowsAVX512, "i32.mul.vs": rowsMulI32SingleAVX512,
}

// MapRows returns the kernel for rows of a kernel of [Map], or nil.
func MapRows(name string) MapRowsFunc { return mapRowsAt(active, name) }

func mapRowsAt(l Level, name string) MapRowsFunc {
	if l < AVX512 {
		return nil
	}
	return mapRowsAVX512[name]
}
