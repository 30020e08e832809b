package op

import (
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/internal/fmt"
)

// DType is the type of the elements of an array in memory.
type DType uint8

// The element types. An operation on F16 or BF16 computes in float32 and rounds its
// result once, whether it is stored or the operand of another operation.
const (
	InvalidType DType = iota
	F32               // IEEE 754 binary32
	F16               // IEEE 754 binary16
	BF16              // the upper half of a binary32
	I32               // 32-bit integer, two's complement
	U32               // 32-bit unsigned integer
	Bool              // 0 or 1 in 32 bits: not every GPU can address bytes
	U8                // 8-bit unsigned integer, for storage: see [DType.Storage]
	I8                // 8-bit integer, two's complement, for storage
)

// The quantised types: weights as package block defines them. Shapes count
// their elements, and rows, along the last axis, are whole blocks. They are
// operands of the operations that say so, and never results.
const (
	Q4_0    DType = iota + I8 + 1 // 4 bits, a scale for 32 elements
	Q5_0                          // 5 bits, a scale for 32 elements
	Q8_0                          // 8 bits, a scale for 32 elements
	Q4_K                          // 4 bits, a scale and a minimum for 32 elements
	Q5_K                          // 5 bits, a scale and a minimum for 32 elements
	Q6_K                          // 6 bits, a scale for 16 elements
	Q4_1                          // 4 bits, a scale and a minimum for 32 elements
	Q5_1                          // 5 bits, a scale and a minimum for 32 elements
	Q2_K                          // 2 bits, a scale and a minimum for 16 elements
	Q3_K                          // 3 bits, a scale for 16 elements
	IQ1_S                         // 1.6 bits by a codebook
	IQ1_M                         // 1.75 bits by a codebook
	IQ2_XXS                       // 2.1 bits by a codebook
	IQ2_XS                        // 2.3 bits by a codebook
	IQ2_S                         // 2.6 bits by a codebook
	IQ3_XXS                       // 3.1 bits by a codebook
	IQ3_S                         // 3.4 bits by a codebook
	IQ4_NL                        // 4 bits, 16 levels closer together near 0
	IQ4_XS                        // 4 bits, the levels of IQ4_NL, a scale for 32 elements
	TQ1_0                         // -1, 0 or 1, five in a byte
	TQ2_0                         // -1, 0 or 1, four in a byte
	MXFP4                         // E2M1, a power of two for 32 elements
	NVFP4                         // E2M1, a number of 7 bits for 16 elements
	Q1_0                          // one bit
	Q2_0                          // two bits
)

type dtypeInfo struct {
	name  string
	size  int
	eps   float64
	block block.Format
}

var dtypes = [...]dtypeInfo{
	InvalidType: {"invalid", 0, 0, block.Invalid},
	F32:         {"f32", 4, 0x1p-23, block.Invalid},
	F16:         {"f16", 2, 0x1p-10, block.Invalid},
	BF16:        {"bf16", 2, 0x1p-7, block.Invalid},
	I32:         {"i32", 4, 0, block.Invalid},
	U32:         {"u32", 4, 0, block.Invalid},
	Bool:        {"bool", 4, 0, block.Invalid},
	U8:          {"u8", 1, 0, block.Invalid},
	I8:          {"i8", 1, 0, block.Invalid},
	Q4_0:        {"q4_0", 0, 0, block.Q4_0},
	Q5_0:        {"q5_0", 0, 0, block.Q5_0},
	Q8_0:        {"q8_0", 0, 0, block.Q8_0},
	Q4_K:        {"q4_k", 0, 0, block.Q4_K},
	Q5_K:        {"q5_k", 0, 0, block.Q5_K},
	Q6_K:        {"q6_k", 0, 0, block.Q6_K},
	Q4_1:        {"q4_1", 0, 0, block.Q4_1},
	Q5_1:        {"q5_1", 0, 0, block.Q5_1},
	Q2_K:        {"q2_k", 0, 0, block.Q2_K},
	Q3_K:        {"q3_k", 0, 0, block.Q3_K},
	IQ1_S:       {"iq1_s", 0, 0, block.IQ1_S},
	IQ1_M:       {"iq1_m", 0, 0, block.IQ1_M},
	IQ2_XXS:     {"iq2_xxs", 0, 0, block.IQ2_XXS},
	IQ2_XS:      {"iq2_xs", 0, 0, block.IQ2_XS},
	IQ2_S:       {"iq2_s", 0, 0, block.IQ2_S},
	IQ3_XXS:     {"iq3_xxs", 0, 0, block.IQ3_XXS},
	IQ3_S:       {"iq3_s", 0, 0, block.IQ3_S},
	IQ4_NL:      {"iq4_nl", 0, 0, block.IQ4_NL},
	IQ4_XS:      {"iq4_xs", 0, 0, block.IQ4_XS},
	TQ1_0:       {"tq1_0", 0, 0, block.TQ1_0},
	TQ2_0:       {"tq2_0", 0, 0, block.TQ2_0},
	MXFP4:       {"mxfp4", 0, 0, block.MXFP4},
	NVFP4:       {"nvfp4", 0, 0, block.NVFP4},
	Q1_0:        {"q1_0", 0, 0, block.Q1_0},
	Q2_0:        {"q2_0", 0, 0, block.Q2_0},
}

// DTypes returns every element type that is not quantised: see [QuantTypes].
func DTypes() []DType { return []DType{F32, F16, BF16, I32, U32, Bool, U8, I8} }

// String returns the short name of the type: f32, f16, bf16, i32, u32, bool,
// u8, i8, q4_0, q4_k.
func (d DType) String() string {
	if int(d) < len(dtypes) {
		return dtypes[d].name
	}
	return fmt.Sprintf("DType(%d)", uint8(d))
}

// typeNames returns the names of types as a list.
func typeNames(types []DType) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t.String()
	}
	return fmt.Sprint(names)
}

// Size returns the bytes that one element takes in memory, 0 for a quantised
// type: see [DType.Bytes].
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

// Storage reports whether d is U8 or I8: a type for storing arrays, without arithmetic.
// [Cast] accepts such arrays, and so do the operations that copy elements unchanged, as
// views, [Concat] and [Gather] do. Cast them to another type before arithmetic.
func (d DType) Storage() bool { return d == U8 || d == I8 }
