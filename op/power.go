package op

import "github.com/rayo-go/rayo/internal/ir"

// wholePower returns x to the power y for integers, by repeated squaring: if bit i of y is
// set, the result is multiplied by x to the power 2^i.
func wholePower(x, y Expr) Expr {
	if x.n.Type == ir.Bool {
		return Expr{new(ir.Node)} // an invalid expression
	}
	result, square := x.like(1), x
	for i := range 32 {
		set := y.binary(ir.And, y.like(bit(y, i))).Ne(y.like(0))
		result = Select(set, result.Mul(square), result)
		square = square.Mul(square)
	}
	if x.n.Type == ir.U32 {
		return result
	}
	// For 1 and -1 a negative power equals the positive power; it is 0 for all other x.
	odd := y.binary(ir.And, y.like(1)).Ne(y.like(0))
	inverse := Select(x.Eq(x.like(1)), x.like(1), Select(x.Eq(x.like(-1)), Select(odd, x.like(-1), x.like(1)), x.like(0)))
	return Select(y.Lt(y.like(0)), inverse, result)
}

// bit returns the number of y's type with only bit i set.
func bit(y Expr, i int) float64 {
	if y.n.Type == ir.I32 {
		return float64(int32(1) << i)
	}
	return float64(uint32(1) << i)
}
