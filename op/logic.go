package op

import "github.com/rayo-go/rayo/internal/ir"

// Logic of truth values, and of the bits of integers.
var (
	defAnd = Operation{define: func() *definition {
		return logic(2, "and", "whether x and y are both true; for integers the bitwise and", func(x, y Expr) Expr { return x.binary(ir.And, y) })
	}}
	defOr = Operation{define: func() *definition {
		return logic(2, "or", "whether x or y is true; for integers the bitwise or", func(x, y Expr) Expr { return x.binary(ir.Or, y) })
	}}
	defXor = Operation{define: func() *definition {
		return logic(2, "xor", "whether exactly one of x and y is true; for integers the bitwise exclusive or", func(x, y Expr) Expr { return x.binary(ir.Xor, y) })
	}}
	defNot = Operation{define: func() *definition {
		return logic(1, "not", "the negation; for integers the bitwise complement", func(x, _ Expr) Expr { return x.unary(ir.Not) })
	}}

	defShiftLeft = Operation{define: func() *definition {
		return elementwise(2, "shift_left", "x with its bits shifted left by y places", Expr{},
			of{formula: "x << y", types: integers, whole: shiftLeft, special: "Zeros are shifted in; the result is 0 where y is outside [0, 31]."})
	}}
	defShiftRight = Operation{define: func() *definition {
		return elementwise(2, "shift_right", "x with its bits shifted right by y places", Expr{},
			of{formula: "x >> y", types: integers, whole: shiftRight, special: "The sign bit is shifted in for i32 and zeros for u32; where y is outside [0, 31] all bits of the result are such bits."})
	}}
)

func logic(arity int, name, doc string, f func(x, y Expr) Expr) *definition {
	return elementwise(arity, name, doc, Expr{}, of{types: logical, whole: f, special: "Exact."})
}

// like returns the constant v in the type of x.
func (x Expr) like(v float64) Expr { return Expr{ir.NewConst(v, x.n.Type)} }

// within reports whether 0 <= y < 32. The codes of shifts accept no other counts.
func within(y Expr) Cond { return y.Ge(y.like(0)).And(y.Lt(y.like(32))) }

func shiftLeft(x, y Expr) Expr {
	zero := y.like(0)
	return Select(within(y), x.binary(ir.Shl, Select(within(y), y, zero)), zero)
}

func shiftRight(x, y Expr) Expr {
	all := x.binary(ir.Shr, x.like(31)).binary(ir.Shr, x.like(1))
	return Select(within(y), x.binary(ir.Shr, Select(within(y), y, y.like(0))), all)
}

// integers is the rule that all operands have one integer type.
func integers(_ *Attrs, in []DType) ([]DType, error) {
	return same(in, func(d DType) bool { return d == I32 || d == U32 })
}

// logical is the rule that all operands have one type, Bool or an integer type.
func logical(_ *Attrs, in []DType) ([]DType, error) {
	return same(in, func(d DType) bool { return d == I32 || d == U32 || d == Bool })
}
