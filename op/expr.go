package op

import (
	"errors"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
)

// Expr is a number in the expression of an elementwise operation: an operand, a constant, or a
// function of them. Its methods build larger expressions; nothing is computed until a device runs
// the operation. The zero Expr is not valid: an operation built from it reports an error.
type Expr struct{ n *ir.Node }

// Cond is a truth value in the expression of an elementwise operation.
type Cond struct{ n *ir.Node }

// Const returns the number v, rounded to float32.
func Const(v float64) Expr { return Expr{ir.NewConst(v, ir.F32)} }

func build(c ir.Code, args ...*ir.Node) *ir.Node {
	n, err := ir.New(c, args...)
	if err != nil {
		return &ir.Node{} // invalid, and so is every expression with this operand
	}
	return n
}

//go:noinline
func (x Expr) unary(c ir.Code) Expr { return Expr{build(c, x.n)} }

// function is unary for a composite code.
//
//go:noinline
func (x Expr) function(c ir.Code) Expr {
	ir.UseFunctions()
	return x.unary(c)
}

//go:noinline
func (x Expr) binary(c ir.Code, y Expr) Expr { return Expr{build(c, x.n, y.n)} }

//go:noinline
func (x Expr) compare(c ir.Code, y Expr) Cond { return Cond{build(c, x.n, y.n)} }
func (x Cond) logic(c ir.Code, y ...*ir.Node) Cond {
	return Cond{build(c, append([]*ir.Node{x.n}, y...)...)}
}

// Add returns x + y.
func (x Expr) Add(y Expr) Expr { return x.binary(ir.Add, y) }

// Sub returns x - y.
func (x Expr) Sub(y Expr) Expr { return x.binary(ir.Sub, y) }

// Mul returns x * y.
func (x Expr) Mul(y Expr) Expr { return x.binary(ir.Mul, y) }

// Div returns x / y, correctly rounded.
func (x Expr) Div(y Expr) Expr { return x.binary(ir.Div, y) }

// Fma returns x*y + z, rounded once.
func (x Expr) Fma(y, z Expr) Expr { return Expr{build(ir.Fma, x.n, y.n, z.n)} }

// Min returns the lesser of x and y, NaN if either is NaN.
func (x Expr) Min(y Expr) Expr { return x.binary(ir.Min, y) }

// Max returns the greater of x and y, NaN if either is NaN.
func (x Expr) Max(y Expr) Expr { return x.binary(ir.Max, y) }

// Pow returns x to the power y.
func (x Expr) Pow(y Expr) Expr {
	ir.UseFunctions()
	return x.binary(ir.Pow, y)
}

// CopySign returns the magnitude of x with the sign of y.
func (x Expr) CopySign(y Expr) Expr { return x.binary(ir.CopySign, y) }

// Neg returns -x.
func (x Expr) Neg() Expr { return x.unary(ir.Neg) }

// Abs returns the magnitude of x.
func (x Expr) Abs() Expr { return x.unary(ir.Abs) }

// Square returns x * x.
func (x Expr) Square() Expr { return x.Mul(x) }

// Sqrt returns the square root, correctly rounded; NaN for x < 0.
func (x Expr) Sqrt() Expr { return x.unary(ir.Sqrt) }

// Rsqrt returns 1/sqrt(x).
func (x Expr) Rsqrt() Expr { return x.function(ir.Rsqrt) }

// Recip returns 1/x.
func (x Expr) Recip() Expr { return x.function(ir.Recip) }

// Floor returns the greatest integer not above x.
func (x Expr) Floor() Expr { return x.unary(ir.Floor) }

// Ceil returns the least integer not below x.
func (x Expr) Ceil() Expr { return x.unary(ir.Ceil) }

// Trunc returns x without its fraction.
func (x Expr) Trunc() Expr { return x.unary(ir.Trunc) }

// Round returns the nearest integer, with ties to even.
func (x Expr) Round() Expr { return x.unary(ir.Round) }

// Exp returns e to the power x.
func (x Expr) Exp() Expr { return x.function(ir.Exp) }

// Exp2 returns 2 to the power x.
func (x Expr) Exp2() Expr { return x.function(ir.Exp2) }

// Expm1 returns e**x - 1, accurate near 0.
func (x Expr) Expm1() Expr { return x.function(ir.Expm1) }

// Log returns the natural logarithm; -Inf at 0, NaN below.
func (x Expr) Log() Expr { return x.function(ir.Log) }

// Log2 returns the logarithm to base 2.
func (x Expr) Log2() Expr { return x.function(ir.Log2) }

// Log1p returns log(1+x), accurate near 0.
func (x Expr) Log1p() Expr { return x.function(ir.Log1p) }

// Tanh returns the hyperbolic tangent.
func (x Expr) Tanh() Expr { return x.function(ir.Tanh) }

// Sigmoid returns 1/(1+e**-x).
func (x Expr) Sigmoid() Expr { return x.function(ir.Sigmoid) }

// Erf returns the Gauss error function.
func (x Expr) Erf() Expr { return x.function(ir.Erf) }

// Erfc returns 1-erf(x), accurate for large x.
func (x Expr) Erfc() Expr { return x.function(ir.Erfc) }

// NormCDF returns the cumulative distribution function of the standard normal distribution,
// accurate also for x far below 0.
func (x Expr) NormCDF() Expr { return x.function(ir.NormCDF) }

// Sin returns the sine of x radians.
func (x Expr) Sin() Expr { return x.function(ir.Sin) }

// Cos returns the cosine of x radians.
func (x Expr) Cos() Expr { return x.function(ir.Cos) }

// Atan returns the arc tangent in radians.
func (x Expr) Atan() Expr { return x.function(ir.Atan) }

// Eq reports whether x == y.
func (x Expr) Eq(y Expr) Cond { return x.compare(ir.Eq, y) }

// Ne reports whether x != y; true if either is NaN.
func (x Expr) Ne(y Expr) Cond { return x.compare(ir.Ne, y) }

// Lt reports whether x < y; false if either is NaN.
func (x Expr) Lt(y Expr) Cond { return x.compare(ir.Lt, y) }

// Le reports whether x <= y; false if either is NaN.
func (x Expr) Le(y Expr) Cond { return x.compare(ir.Le, y) }

// Gt reports whether x > y; false if either is NaN.
func (x Expr) Gt(y Expr) Cond { return y.Lt(x) }

// Ge reports whether x >= y; false if either is NaN.
func (x Expr) Ge(y Expr) Cond { return y.Le(x) }

// And reports whether both hold.
func (x Cond) And(y Cond) Cond { return x.logic(ir.And, y.n) }

// Or reports whether at least one of them holds.
func (x Cond) Or(y Cond) Cond { return x.logic(ir.Or, y.n) }

// Not reports whether x does not hold.
func (x Cond) Not() Cond { return x.logic(ir.Not) }

// Select returns a if c holds, else b.
func Select(c Cond, a, b Expr) Expr { return Expr{build(ir.Select, c.n, a.n, b.n)} }

// maxExpr bounds the number of distinct values in a user's expression. A kernel of a larger one
// would exceed the registers or the compilers of devices.
const maxExpr = 4096

// Unary returns a user's elementwise operation of one operand. f is called
// once, with the operand, and returns the result:
//
//	softsign := op.Unary("softsign", func(x op.Expr) op.Expr {
//		return x.Div(x.Abs().Add(op.Const(1)))
//	})
//
// The operation runs on every device, fuses like the built-in ones, and is cached by its
// expression, not by its name. A mistake (a nil f, an invalid result) is reported by
// [Operation.Err] and by every use.
func Unary(name string, f func(x Expr) Expr) *Operation {
	if f == nil {
		return broken(name, 1, "the function is nil")
	}
	return userOperation(name, 1, f(argument(0)))
}

// Binary returns a user's elementwise operation of two operands; see [Unary].
func Binary(name string, f func(x, y Expr) Expr) *Operation {
	if f == nil {
		return broken(name, 2, "the function is nil")
	}
	return userOperation(name, 2, f(argument(0), argument(1)))
}

// Ternary returns a user's elementwise operation of three operands; see [Unary].
func Ternary(name string, f func(x, y, z Expr) Expr) *Operation {
	if f == nil {
		return broken(name, 3, "the function is nil")
	}
	return userOperation(name, 3, f(argument(0), argument(1), argument(2)))
}

func argument(i int) Expr  { return Expr{ir.NewArg(i, ir.F32)} }
func parameter(i int) Expr { return Expr{ir.NewParam(i)} }

func broken(name string, arity int, why string) *Operation {
	return operationOf(&definition{name: name, class: Elementwise, arity: [2]int{arity, arity}, outs: 1, id: -1,
		err: fmt.Errorf("operation %q: %s: %w", name, why, ErrUnsupported)})
}

// errForeign is the error of a user's function that captured an operand or parameter of another
// operation.
var errForeign = errors.New("the expression uses an operand of another operation: build it from the arguments of its own function only")

func userOperation(name string, arity int, result Expr) *Operation {
	if result.n == nil || result.n.Type != ir.F32 {
		return broken(name, arity, "the result of the function is not a valid number")
	}
	list, _ := ir.Flatten(result.n)
	if len(list) > maxExpr {
		return broken(name, arity, fmt.Sprintf("the expression has %d values; at most %d are allowed", len(list), maxExpr))
	}
	for _, n := range list {
		if n.Code == ir.Arg && n.Index >= arity || n.Code == ir.Param {
			return broken(name, arity, errForeign.Error())
		}
	}
	o := &definition{name: name, class: Elementwise, arity: [2]int{arity, arity}, outs: 1, id: -1,
		tol:  Tolerance{ULP: 1, Mag: 1}, // the reference computes the magnitude from the expression
		expr: result.n, inputs: operandNames[:arity]}
	o.key = "user:" + ir.Key(result.n)
	o.setPlain()
	return operationOf(o)
}
