package op

import (
	"slices"

	"github.com/rayo-go/rayo/internal/ir"
)

// The bits of a number of 32 bits, read as another type of 32 bits. There is one
// operation for each type of the result, so that each has one expression.
var (
	defBitcastF32 = Operation{define: func() *definition {
		return bitcast("bitcast_f32", F32)
	}}
	defBitcastI32 = Operation{define: func() *definition {
		return bitcast("bitcast_i32", I32)
	}}
	defBitcastU32 = Operation{define: func() *definition {
		return bitcast("bitcast_u32", U32)
	}}
)

// words32 are the element types between which bits can be moved.
var words32 = []DType{F32, I32, U32}

// bitcast returns the operation that reinterprets bits as a number of type to. It accepts the two
// other types; a cast to the operand's own type would do nothing.
func bitcast(name string, to DType) *definition {
	var floats Expr
	if to != F32 {
		floats = Expr{ir.NewBitcast(ir.NewArg(0, ir.F32), register(to))}
	}
	return elementwise(1, name, "the bits of x as "+to.String(), floats, of{
		formula: "bitcast<" + to.String() + ">(x)",
		types: func(_ *Attrs, in []DType) ([]DType, error) {
			_, err := same(in, func(d DType) bool { return d != to && slices.Contains(words32, d) })
			return []DType{to}, err
		},
		whole: func(x, _ Expr) Expr {
			if x.n.Type == ir.Bool || x.n.Type == register(to) {
				return Expr{new(ir.Node)} // an invalid expression
			}
			return Expr{ir.NewBitcast(x.n, register(to))}
		},
		special: "Exact, -0 and infinities included. The payload of a NaN is not defined, and a subnormal float may become 0 on a device that flushes subnormals.",
	})
}

// Bitcast returns the operation that gives the bits of 32-bit numbers as type to, or
// nil if that is not f32, i32 or u32.
func Bitcast(to DType) *Operation {
	return map[DType]*Operation{F32: BitcastF32, I32: BitcastI32, U32: BitcastU32}[to]
}
