package op

import "fmt"

// DType is the type of the elements of an array in memory.
type DType uint8

// The element types. Arithmetic on F16 and BF16 is done in float32 and rounded
// once when a result is stored.
const (
	InvalidType DType = iota
	F32               // IEEE 754 binary32
	F16               // IEEE 754 binary16
	BF16              // the upper half of a binary32
	I32               // 32-bit integer, two's complement
	U32               // 32-bit unsigned integer
	Bool              // 0 or 1 in 32 bits: not every GPU can address bytes
)

type dtypeInfo struct {
	name string
	size int
	eps  float64
}

var dtypes = [...]dtypeInfo{
	InvalidType: {"invalid", 0, 0},
	F32:         {"f32", 4, 0x1p-23},
	F16:         {"f16", 2, 0x1p-10},
	BF16:        {"bf16", 2, 0x1p-7},
	I32:         {"i32", 4, 0},
	U32:         {"u32", 4, 0},
	Bool:        {"bool", 4, 0},
}

// DTypes returns every element type.
func DTypes() []DType { return []DType{F32, F16, BF16, I32, U32, Bool} }

// String returns the short name of the type: f32, f16, bf16, i32, u32, bool.
func (d DType) String() string {
	if int(d) < len(dtypes) {
		return dtypes[d].name
	}
	return fmt.Sprintf("DType(%d)", uint8(d))
}

// Size returns the bytes that one element takes in memory.
func (d DType) Size() int {
	if int(d) < len(dtypes) {
		return dtypes[d].size
	}
	return 0
}

// Eps returns the distance from 1 to the next larger value of a floating
// type, and 0 for the others.
func (d DType) Eps() float64 {
	if int(d) < len(dtypes) {
		return dtypes[d].eps
	}
	return 0
}

// Float reports whether d is a floating type.
func (d DType) Float() bool { return d == F32 || d == F16 || d == BF16 }
