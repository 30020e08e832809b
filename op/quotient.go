package op

import (
	"math"

	"github.com/rayo-go/rayo/internal/ir"
)

// Quotients rounded to whole numbers, and their remainders.
var (
	defFloorDivide = Operation{define: func() *definition {
		return elementwise(2, "floor_divide", "the greatest integer not above x / y", floorDivide(),
			of{formula: "floor(x / y)", types: numbers, tol: ulp(1), whole: func(x, y Expr) Expr { return wholeDivide(x, y).floor().q },
				special: "As in NumPy: x / y where y is 0; otherwise NaN where x is infinite, and -1 for a finite x and an infinite y of the other sign. Integers give 0 where y is 0; the quotient of -2^31 and -1 wraps."})
	}}
	defFmod = Operation{define: func() *definition {
		return elementwise(2, "fmod", "the remainder of x / y, with the quotient rounded towards 0", fmod(),
			of{formula: "x - trunc(x / y) * y", types: numbers, tol: Tolerance{Mag: 1}, mag: quotientTooLarge(), whole: func(x, y Expr) Expr { return wholeDivide(x, y).r },
				special: "The result has the sign of x and is exact; it is not defined where |x / y| is 2^23 or more. NaN where y is 0 or x is infinite; x where y is infinite. Integers give 0 where y is 0."})
	}}
	defRemainder = Operation{define: func() *definition {
		return elementwise(2, "remainder", "the remainder of x / y, with the quotient rounded down", remainder(),
			of{formula: "x - floor(x / y) * y", types: numbers, tol: Tolerance{ULP: 1, Mag: 1}, mag: quotientTooLarge(), whole: func(x, y Expr) Expr { return wholeDivide(x, y).floor().r },
				special: "The result has the sign of y, as in Python's %; it is not defined where |x / y| is 2^23 or more. NaN where y is 0 or x is infinite. Integers give 0 where y is 0."})
	}}
)

// quotientTooLarge returns the magnitude of a remainder's error: infinity if |x / y| is 2^23 or more,
// where float32 does not hold the quotient to its last place, else 0.
func quotientTooLarge() Expr {
	a, b := x.Abs(), y.Abs()
	return Select(b.Gt(zero).And(a.Div(b).Ge(Const(0x1p23))), infinity, zero)
}

// fmod computes the exact remainder of a rounded quotient. The quotient may be off by one, so it then
// adds or subtracts b once.
func fmod() Expr {
	a, b := x.Abs(), y.Abs()
	r := a.Div(b).Trunc().Neg().Fma(b, a)
	r = Select(r.Lt(zero), r.Add(b), r)
	r = Select(r.Ge(b), r.Sub(b), r)
	return Select(b.Eq(infinity).And(a.Lt(infinity)), x, r.CopySign(x))
}

// opposite reports whether exactly one of x and y is less than 0.
func opposite(x, y Expr) Cond { return x.Lt(x.like(0)).logic(ir.Xor, y.Lt(y.like(0)).n) }

func remainder() Expr {
	r := fmod()
	return Select(r.Eq(zero), zero.CopySign(y), Select(opposite(r, y), r.Add(y), r))
}

// floorDivide corrects the rounded quotient by one if rounding, or an inexact division of a device, has
// moved it to the wrong side of an integer. The sign of the remainder shows this.
func floorDivide() Expr {
	q := x.Div(y).Floor()
	r := q.Neg().Fma(y, x)
	r = Select(y.Abs().Eq(infinity), x, r)
	finite := q.Abs().Lt(infinity).And(y.Abs().Lt(infinity).Or(x.Abs().Lt(infinity)))
	down := finite.And(r.Ne(zero)).And(opposite(r, y))
	up := finite.And(r.Abs().Ge(y.Abs())).And(x.Abs().Ge(y.Abs())) // a small x may vanish in r
	q = Select(y.Abs().Eq(infinity).And(x.Abs().Lt(infinity)), zero, q)
	q = Select(down, q.Sub(one), Select(up, q.Add(one), q))
	return Select(x.Abs().Eq(infinity).And(y.Ne(zero)), Const(math.NaN()), q)
}

// divided is an integer quotient q and its remainder r, for a divisor y.
type divided struct {
	q, r, y Expr
	invalid bool
}

// floor rounds a quotient that is rounded towards 0 to the integer not above it.
func (d divided) floor() divided {
	if d.invalid || d.q.n.Type == ir.U32 {
		return d
	}
	below := d.r.Ne(d.r.like(0)).And(opposite(d.r, d.y))
	d.q, d.r = Select(below, d.q.Sub(d.q.like(1)), d.q), Select(below, d.r.Add(d.y), d.r)
	return d
}

// wholeDivide divides integers, rounding towards 0. A divisor of 0 gives 0 and 0.
func wholeDivide(x, y Expr) divided {
	d := divided{y: y}
	none := y.Eq(y.like(0))
	switch x.n.Type {
	case ir.I32:
		d.q, d.r = signedDivide(x, Select(none, y.like(1), y))
	case ir.U32:
		d.q, d.r = unsignedDivide(x, Select(none, y.like(1), y))
	default:
		return divided{q: Expr{&ir.Node{}}, r: Expr{&ir.Node{}}, invalid: true}
	}
	d.q, d.r = Select(none, y.like(0), d.q), Select(none, y.like(0), d.r)
	return d
}

// signedDivide divides in float32, which gives a quotient that is off by at most a few hundred. It
// then divides the remainder in the same way, which leaves a quotient that is off by at most one.
func signedDivide(x, y Expr) (q, r Expr) {
	least := x.like(math.MinInt32)
	by := Select(y.Eq(least), y.like(1), y) // the magnitude of least is not an i32
	q, r = x.like(0), x
	for range 2 {
		part := Expr{ir.NewConvert(Expr{ir.NewConvert(r.n, ir.F32)}.Div(Expr{ir.NewConvert(by.n, ir.F32)}).n, ir.I32)}
		q, r = q.Add(part), r.Sub(part.Mul(by))
	}
	nearer := func(c Cond) {
		step := Select(opposite(r, by), by.like(-1), by.like(1))
		q, r = Select(c, q.Add(step), q), Select(c, r.Sub(step.Mul(by)), r)
	}
	nearer(r.Abs().Ge(by.Abs())) // only where a device divides less exactly than IEEE 754
	nearer(r.Ne(r.like(0)).And(opposite(r, x)))
	alone := y.Eq(least).And(x.Eq(least))
	q = Select(y.Eq(least), Select(alone, x.like(1), x.like(0)), q)
	return q, Select(y.Eq(least), Select(alone, x.like(0), x), r)
}

// unsignedDivide divides half of x, which is an i32, and doubles the quotient.
func unsignedDivide(x, y Expr) (q, r Expr) {
	signed := func(x Expr) Expr { return Expr{ir.NewBitcast(x.n, ir.I32)} }
	large := y.Ge(y.like(1 << 31)) // not an i32: the quotient is 0 or 1
	half, _ := signedDivide(signed(x.binary(ir.Shr, x.like(1))), signed(Select(large, y.like(1), y)))
	q = Expr{ir.NewBitcast(half.n, ir.U32)}.binary(ir.Shl, x.like(1))
	q = Select(large, x.like(0), q)
	r = x.Sub(q.Mul(y))
	over := r.Ge(y)
	return Select(over, q.Add(q.like(1)), q), Select(over, r.Sub(y), r)
}
