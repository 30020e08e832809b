package op

import (
	"strings"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
)

var operandNames = []string{"x", "y", "z"}

// x, y and z are the operands of the expressions below; c is the first operand
// if it is a condition.
var (
	x = argument(0)
	y = argument(1)
	z = argument(2)
	c = Cond{ir.NewArg(0, ir.Bool)}

	zero = Const(0)
	one  = Const(1)
)

// of holds the properties of an elementwise operation that have defaults.
type of struct {
	aliases []string
	params  []Param
	options string
	special string
	types   typeRule
	tol     Tolerance
	mag     Expr // what tol.Mag refers to
	inputs  []string
	formula string // instead of the expression's
	// whole, if not nil, returns the expression for operands of an integer type or Bool. It
	// returns an invalid expression for a type that the operation does not accept.
	whole    func(x, y Expr) Expr
	selfTest *irhook.SelfTest
}

func elementwise(arity int, name, doc string, e Expr, s of) *definition {
	if s.inputs == nil {
		s.inputs = operandNames[:arity]
	}
	o := &definition{name: name, class: Elementwise, doc: doc, arity: [2]int{arity, arity}, expr: e.n, mag: s.mag.n,
		aliases: s.aliases, params: s.params, options: s.options, special: s.special, types: s.types, tol: s.tol, inputs: s.inputs, formula: s.formula, selfTest: s.selfTest}
	if s.whole != nil {
		for _, t := range []ir.Type{ir.I32, ir.U32, ir.Bool} {
			if n := s.whole(Expr{ir.NewArg(0, t)}, Expr{ir.NewArg(1, t)}).n; n.Type != ir.Invalid {
				o.typed[t] = n
			}
		}
		if o.expr == nil {
			o.expr = o.typed[ir.I32]
		}
	}
	return add(o)
}

func comparison(name, doc string, e Cond) *definition {
	return elementwise(2, name, doc, Expr(e), of{types: compares,
		special: "A comparison with NaN gives false, except not_equal, which gives true; -0 equals +0."})
}

// subnormal is the error of x·f(x) if f(x) is subnormal: one unit in the last place of
// f(x), times the largest |x| for which f(x) is not 0.
const subnormal = 104 * 0x1p-149

// ulp is the tolerance of an elementwise function.
func ulp(n float64) Tolerance { return Tolerance{ULP: n} }

// The element type rules. An absent operand is InvalidType.

// floats is the rule that all operands have one floating type, which is the result's.
func floats(_ *Attrs, in []DType) ([]DType, error) { return same(in, DType.Float) }

// numbers is the rule that all operands have one numeric type, which is the result's.
func numbers(_ *Attrs, in []DType) ([]DType, error) {
	return same(in, func(d DType) bool { return d.Float() || d == I32 || d == U32 })
}

// signed is the rule that all operands have one type, floating or i32.
func signed(_ *Attrs, in []DType) ([]DType, error) {
	return same(in, func(d DType) bool { return d.Float() || d == I32 })
}

// compares is the rule of comparisons: operands of one numeric type, a result of Bool.
func compares(a *Attrs, in []DType) ([]DType, error) {
	if _, err := numbers(a, in); err != nil {
		return nil, err
	}
	return []DType{Bool}, nil
}

// chooses is the rule of a selection: a Bool, then two operands of one numeric type.
func chooses(a *Attrs, in []DType) ([]DType, error) {
	if in[0] != Bool {
		return nil, unsupported("condition has type %v: expected bool", in[0])
	}
	return numbers(a, in[1:])
}

// casts gives the type that the parameters name.
func casts(a *Attrs, in []DType) ([]DType, error) {
	to := DType(a.I[0])
	if int(to) != a.I[0] {
		to = InvalidType
	}
	if to.Size() == 0 || in[0].Size() == 0 {
		return nil, unsupported("cast from %v to %v: both must be types of single numbers", in[0], to)
	}
	return []DType{to}, nil
}

// unsupported returns an ErrUnsupported with a formatted reason.
func unsupported(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, ErrUnsupported)...)
}

// same requires one type for all present operands, which ok must accept, and returns the type.
func same(in []DType, ok func(DType) bool) ([]DType, error) {
	t := in[0]
	for _, d := range in {
		if d != t && d != InvalidType {
			return nil, unsupported("operands of types %v and %v: cast one to the type of the other", t, d)
		}
	}
	if t.Storage() && !ok(t) {
		return nil, unsupported("operand of type %v, which has no arithmetic: cast it to f32, i32 or u32 first", t)
	}
	if !ok(t) {
		var takes []string
		for _, d := range append(DTypes(), QuantTypes()...) {
			if ok(d) {
				takes = append(takes, d.String())
			}
		}
		advice := ""
		if ok(F32) && !t.Quantized() {
			advice = ": cast it"
		}
		return nil, unsupported("operand of type %v: expected %s%s", t, strings.Join(takes, ", "), advice)
	}
	return []DType{t}, nil
}

// Activations.
var (
	defRelu = Operation{define: func() *definition {
		return elementwise(1, "relu", "the positive part", x.Max(zero),
			of{types: signed, special: "NaN stays NaN; the sign of a zero result is not defined."})
	}}

	defLeakyRelu = Operation{define: func() *definition {
		return elementwise(1, "leaky_relu", "x, scaled by slope where it is negative",
			Select(x.Lt(zero), x.Mul(parameter(0)), x),
			of{options: "LeakyReluOpts", tol: ulp(1), special: "NaN stays NaN.",
				params: []Param{{Name: "slope", Doc: "factor of negative x", Default: 0.01}}})
	}}

	defElu = Operation{define: func() *definition {
		return elementwise(1, "elu", "the exponential linear unit",
			Select(x.Le(zero), parameter(0).Mul(x.Expm1()), x),
			of{options: "EluOpts", tol: ulp(4), special: "NaN stays NaN; -Inf gives -alpha.",
				params: []Param{{Name: "alpha", Doc: "magnitude of the limit at -Inf", Default: 1}}})
	}}

	defSelu = Operation{define: func() *definition {
		return elementwise(1, "selu", "the scaled exponential linear unit of Klambauer et al. 2017",
			Const(1.0507009873554804934193349852946).Mul(
				Select(x.Le(zero), Const(1.6732632423543772848170429916717).Mul(x.Expm1()), x)),
			of{tol: ulp(5), special: "NaN stays NaN; -Inf gives about -1.7581."})
	}}

	defSigmoid = Operation{define: func() *definition {
		return elementwise(1, "sigmoid", "the logistic function", x.Sigmoid(),
			of{tol: ulp(4), special: "NaN stays NaN; 1 at +Inf, 0 at -Inf. The error is at most 3 ulp unless a fused operation limits the range of x."})
	}}

	defTanh = Operation{define: func() *definition {
		return elementwise(1, "tanh", "the hyperbolic tangent", x.Tanh(),
			of{tol: ulp(2), special: "NaN stays NaN; ±1 at ±Inf; -0 stays -0."})
	}}

	defSilu = Operation{define: func() *definition {
		return elementwise(1, "silu", "x times its logistic function, also called swish", x.Mul(x.Sigmoid()),
			of{aliases: []string{"swish"}, tol: Tolerance{ULP: 5, Abs: subnormal}, special: "NaN stays NaN; NaN at -Inf, as 0 times -Inf is NaN. The error is at most 4 ulp unless a fused operation limits the range of x."})
	}}

	defHardSwish = Operation{define: func() *definition {
		return elementwise(1, "hard_swish", "the piecewise approximation of silu from Howard et al. 2019",
			// The factor 1/6 comes first: six times a large x would overflow.
			x.Mul(x.Add(Const(3)).Max(zero).Min(Const(6)).Mul(Const(1.0/6))),
			of{aliases: []string{"hardswish"}, tol: ulp(2), special: "NaN stays NaN; NaN at -Inf."})
	}}

	defMish = Operation{define: func() *definition {
		return elementwise(1, "mish", "x times tanh(softplus(x))", mish(),
			of{tol: Tolerance{ULP: 6, Abs: subnormal}, special: "NaN stays NaN; NaN at -Inf."})
	}}

	defGelu = Operation{define: func() *definition {
		return elementwise(1, "gelu", "x times the cumulative distribution function of the standard normal distribution",
			// Not (1+erf(x/sqrt 2))/2, which cancels for negative x, nor by erfc,
			// whose value at -10 moves by 100 units when x/sqrt 2 is rounded.
			x.Mul(x.NormCDF()),
			of{tol: Tolerance{ULP: 10, Abs: 1e-37}, special: "NaN stays NaN; NaN at -Inf."})
	}}

	defGeluTanh = Operation{define: func() *definition {
		return elementwise(1, "gelu_tanh", "the tanh approximation of gelu",
			// (1+tanh u)/2 is sigmoid(2u), which does not cancel for negative u.
			x.Mul(x.Mul(x.Square().Fma(Const(2*0.044715*0.7978845608028654), Const(2*0.7978845608028654))).Sigmoid()),
			// Three roundings of the argument u, each by up to 2^-24 of u, change a result just
			// below a power of two by 3|u| units: 213 at u = -71. Sigmoid and the product add 3
			// units. For smaller u, Abs exceeds all of these errors.
			of{tol: Tolerance{ULP: 216, Abs: 1e-37}, special: "NaN stays NaN; NaN at -Inf."})
	}}

	defCelu = Operation{define: func() *definition {
		return elementwise(1, "celu", "the continuously differentiable exponential linear unit",
			x.Max(zero).Add(parameter(0).Mul(x.Div(parameter(0)).Expm1()).Min(zero)),
			of{options: "CeluOpts", tol: ulp(4), special: "NaN stays NaN; -Inf gives -alpha.",
				params: []Param{{Name: "alpha", Doc: "magnitude of the limit at -Inf", Default: 1}}})
	}}

	defHardSigmoid = Operation{define: func() *definition {
		return elementwise(1, "hard_sigmoid", "alpha·x + beta limited to [0, 1]", parameter(0).Fma(x, parameter(1)).Max(zero).Min(one),
			// A product beyond |beta| + 1 gives exactly 0 or 1, whatever its error.
			of{tol: Tolerance{ULP: 1, Mag: 1}, mag: parameter(0).Mul(x).Abs().Min(parameter(1).Abs().Add(Const(2))), special: "NaN stays NaN.",
				params: []Param{{Name: "alpha", Doc: "the slope", Required: true}, {Name: "beta", Doc: "the value at 0", Required: true}}})
	}}

	defShrink = Operation{define: func() *definition {
		return elementwise(1, "shrink", "x moved towards 0 by bias where |x| > lambda, else 0",
			Select(x.Lt(parameter(0).Neg()), x.Add(parameter(1)), Select(x.Gt(parameter(0)), x.Sub(parameter(1)), zero)),
			of{special: "NaN gives 0.",
				params: []Param{{Name: "lambda", Doc: "the greatest magnitude that becomes 0", Required: true}, {Name: "bias", Doc: "the distance by which the other elements move towards 0", Required: true}}})
	}}

	defThreshold = Operation{define: func() *definition {
		return elementwise(1, "threshold", "x where it is greater than edge, else value", Select(x.Gt(parameter(0)), x, parameter(1)),
			of{special: "NaN gives value.",
				params: []Param{{Name: "edge", Doc: "the limit that x must exceed", Required: true}, {Name: "value", Doc: "the result for all other elements", Required: true}}})
	}}

	defPRelu = Operation{define: func() *definition {
		return elementwise(2, "prelu", "x, scaled by slope where it is negative", Select(x.Lt(zero), x.Mul(y), x),
			of{tol: ulp(1), inputs: []string{"x", "slope"}, special: "NaN in x stays NaN."})
	}}

	defSoftsign = Operation{define: func() *definition {
		return elementwise(1, "softsign", "x over one plus its magnitude", x.Div(x.Abs().Add(one)),
			of{tol: ulp(2), special: "NaN stays NaN; NaN at ±Inf."})
	}}

	defSoftplus = Operation{define: func() *definition {
		return elementwise(1, "softplus", "log(1 + e**x) without overflow",
			x.Max(zero).Add(x.Abs().Neg().Exp().Log1p()),
			of{tol: ulp(3), special: "NaN stays NaN; 0 at -Inf, +Inf at +Inf."})
	}}
)

// mish: tanh(log(1+e**x)) is ((1+e)² - 1) / ((1+e)² + 1) with e = e**x; the
// numerator is written e·(e+2) so that it does not cancel, and x is bounded
// where the quotient has long been 1 so that e² does not overflow.
func mish() Expr {
	e := x.Min(Const(20)).Exp()
	n := e.Mul(e.Add(Const(2)))
	return x.Mul(n.Div(n.Add(Const(2))))
}

// Arithmetic of one operand.
var (
	defAbs = Operation{define: func() *definition {
		return elementwise(1, "abs", "the magnitude", x.Abs(),
			of{types: signed, special: "NaN stays NaN; -0 gives +0. -2^31 in i32 is unchanged."})
	}}
	defNeg = Operation{define: func() *definition {
		return elementwise(1, "neg", "the negative", x.Neg(),
			of{types: signed, special: "NaN stays NaN; 0 gives -0. -2^31 in i32 is unchanged."})
	}}
	defSign = Operation{define: func() *definition {
		return elementwise(1, "sign", "-1, 0 or 1 by the sign of x",
			Select(x.Gt(zero), one, Select(x.Lt(zero), Const(-1), Select(x.Eq(zero), zero, x))),
			of{types: signed, special: "NaN stays NaN; ±0 gives +0."})
	}}
	defFloor = Operation{define: func() *definition {
		return elementwise(1, "floor", "the greatest integer not above x", x.Floor(), of{special: integral})
	}}
	defCeil = Operation{define: func() *definition {
		return elementwise(1, "ceil", "the least integer not below x", x.Ceil(), of{special: integral})
	}}
	defRound = Operation{define: func() *definition {
		return elementwise(1, "round", "the nearest integer, with ties to even", x.Round(), of{special: integral})
	}}
	defTrunc = Operation{define: func() *definition {
		return elementwise(1, "trunc", "x without its fraction", x.Trunc(), of{special: integral})
	}}

	defExp = Operation{define: func() *definition {
		return elementwise(1, "exp", "e to the power x", x.Exp(), of{tol: ulp(3), special: "NaN stays NaN; +Inf above 88.73, 0 at -Inf; results below 2^-126 are subnormal, not 0. The error is at most 2 ulp unless a fused operation limits the range of x."})
	}}
	defExp2 = Operation{define: func() *definition {
		return elementwise(1, "exp2", "2 to the power x", x.Exp2(), of{tol: ulp(2), special: "NaN stays NaN; +Inf from 128 on, 0 at -Inf."})
	}}
	defLog = Operation{define: func() *definition {
		return elementwise(1, "log", "the natural logarithm", x.Log(), of{tol: ulp(2), special: "NaN for x < 0; -Inf at ±0."})
	}}
	defLog2 = Operation{define: func() *definition {
		return elementwise(1, "log2", "the logarithm to base 2", x.Log2(), of{tol: ulp(2), special: "NaN for x < 0; -Inf at ±0."})
	}}
	defLog1p = Operation{define: func() *definition {
		return elementwise(1, "log1p", "log(1 + x), accurate near 0", x.Log1p(), of{tol: ulp(2), special: "NaN for x < -1; -Inf at -1; -0 stays -0."})
	}}
	defSqrt = Operation{define: func() *definition {
		return elementwise(1, "sqrt", "the square root, correctly rounded", x.Sqrt(), of{special: "NaN for x < 0; -0 stays -0."})
	}}
	defRsqrt = Operation{define: func() *definition {
		return elementwise(1, "rsqrt", "1 / sqrt(x)", x.Rsqrt(), of{tol: ulp(2), special: "NaN for x < 0; ±Inf at ±0."})
	}}
	defRecip = Operation{define: func() *definition {
		return elementwise(1, "recip", "1 / x", x.Recip(), of{aliases: []string{"reciprocal"}, tol: ulp(1), special: "±Inf at ±0."})
	}}

	defSquare = Operation{define: func() *definition {
		return elementwise(1, "square", "x times x", x.Square(), of{types: numbers, special: "NaN stays NaN."})
	}}

	// 2.5 units and not 2: just below 1, where units are half as large as above 1, the result 1.0000001
	// is off by a little more than 2 units.
	defSin = Operation{define: func() *definition {
		return elementwise(1, "sin", "the sine of x radians", x.Sin(), of{tol: ulp(2.5), special: "NaN at NaN and ±Inf; -0 stays -0."})
	}}
	defCos = Operation{define: func() *definition {
		return elementwise(1, "cos", "the cosine of x radians", x.Cos(), of{tol: ulp(2.5), special: "NaN at NaN and ±Inf."})
	}}
	defErf = Operation{define: func() *definition {
		return elementwise(1, "erf", "the Gauss error function", x.Erf(), of{tol: ulp(3), special: "NaN stays NaN; ±1 at ±Inf; -0 stays -0."})
	}}
)

const integral = "NaN, infinities and -0 are unchanged."

// Arithmetic with a scalar.
var (
	defClip = Operation{define: func() *definition {
		return elementwise(1, "clip", "x limited to [lo, hi]", x.Max(parameter(0)).Min(parameter(1)),
			of{params: []Param{{Name: "lo", Doc: "lower limit", Required: true}, {Name: "hi", Doc: "upper limit", Required: true}},
				special: "NaN in x, lo or hi gives NaN; hi where lo > hi."})
	}}
	defScale = Operation{define: func() *definition {
		return elementwise(1, "scale", "x times s", x.Mul(parameter(0)),
			of{params: []Param{{Name: "s", Doc: "the factor", Required: true}}, special: "IEEE 754."})
	}}
	defAddScalar = Operation{define: func() *definition {
		return elementwise(1, "add_scalar", "x plus s", x.Add(parameter(0)),
			of{params: []Param{{Name: "s", Doc: "the summand", Required: true}}, special: "IEEE 754."})
	}}
)

// Arithmetic of two and three operands.
var (
	defAdd = Operation{define: func() *definition {
		return elementwise(2, "add", "x plus y", x.Add(y), of{types: numbers, special: "IEEE 754; integers wrap."})
	}}
	defSub = Operation{define: func() *definition {
		return elementwise(2, "sub", "x minus y", x.Sub(y), of{types: numbers, special: "IEEE 754; integers wrap."})
	}}
	defMul = Operation{define: func() *definition {
		return elementwise(2, "mul", "x times y", x.Mul(y), of{types: numbers, special: "IEEE 754; integers wrap."})
	}}
	defDiv = Operation{define: func() *definition {
		return elementwise(2, "div", "x divided by y, correctly rounded", x.Div(y),
			of{types: numbers, whole: func(x, y Expr) Expr { return wholeDivide(x, y).q }, special: "IEEE 754. Integer quotients are rounded towards 0; the result is 0 where y is 0."})
	}}
	defMinimum = Operation{define: func() *definition {
		return elementwise(2, "minimum", "the lesser of x and y", x.Min(y), of{types: numbers, special: "NaN if either is NaN; -0 and +0 count as equal, and either may result."})
	}}
	defMaximum = Operation{define: func() *definition {
		return elementwise(2, "maximum", "the greater of x and y", x.Max(y), of{types: numbers, special: "NaN if either is NaN; -0 and +0 count as equal, and either may result."})
	}}
	defPow = Operation{define: func() *definition {
		return elementwise(2, "pow", "x to the power y", x.Pow(y), of{types: numbers, tol: ulp(4), whole: wholePower,
			special: "As in C99 and NumPy: 1 for y = 0 and for x = 1, NaN for x < 0 with y not integral. Integers wrap; a negative power of an integer is truncated towards 0, so it is 0 unless x is 1 or -1."})
	}}
	defAxpy = Operation{define: func() *definition {
		return elementwise(2, "axpy", "a·x + y", parameter(0).Fma(x, y),
			of{tol: Tolerance{ULP: 1, Mag: 1}, mag: parameter(0).Mul(x).Abs(), // because a device may round the product
				params: []Param{{Name: "a", Doc: "the factor of x", Required: true}}, special: "IEEE 754; the result is not defined where a·x overflows and a·x + y does not."})
	}}
	// This form does not overflow between finite numbers, and gives exactly x at 0 and y at 1.
	defLerp = Operation{define: func() *definition {
		return elementwise(2, "lerp", "x + t·(y-x), exactly x at t = 0 and y at t = 1",
			parameter(0).Fma(y, parameter(0).Neg().Fma(x, x)),
			of{tol: Tolerance{ULP: 1, Mag: 2}, mag: parameter(0).Mul(x).Abs().Add(x.Abs()).Add(parameter(0).Mul(y).Abs()),
				params: []Param{{Name: "t", Doc: "the position between x and y", Required: true}}, special: "IEEE 754; NaN if x is infinite. For t outside [0, 1] an intermediate term may overflow where the result would not; the result is then not defined."})
	}}
	defFma = Operation{define: func() *definition {
		return elementwise(3, "fma", "x·y + z, rounded once", x.Fma(y, z), of{tol: ulp(1), special: "IEEE 754."})
	}}
)

// Comparisons and choice.
var (
	defEqual = Operation{define: func() *definition {
		return comparison("equal", "whether x == y", x.Eq(y))
	}}
	defNotEqual = Operation{define: func() *definition {
		return comparison("not_equal", "whether x != y", x.Ne(y))
	}}
	defLess = Operation{define: func() *definition {
		return comparison("less", "whether x < y", x.Lt(y))
	}}
	defLessEqual = Operation{define: func() *definition {
		return comparison("less_equal", "whether x <= y", x.Le(y))
	}}
	defGreater = Operation{define: func() *definition {
		return comparison("greater", "whether x > y", x.Gt(y))
	}}
	defGreaterEqual = Operation{define: func() *definition {
		return comparison("greater_equal", "whether x >= y", x.Ge(y))
	}}

	defWhere = Operation{define: func() *definition {
		return elementwise(3, "where", "y where c holds, else z", Select(c, y, z),
			of{aliases: []string{"select"}, types: chooses, inputs: []string{"c", "y", "z"}, special: "Values are copied unchanged."})
	}}

	// defCast converts between element types; its parameter is the type.
	defCast = Operation{define: func() *definition {
		return elementwise(1, "cast", "x in another element type", x,
			of{types: casts, selfTest: &irhook.SelfTest{Attrs: CastTo(I32), Shapes: [][]int{{67}}, Large: true}, special: "To a float: rounded to nearest even. Float to integer: truncated and saturated, NaN gives 0. Integer to u8 or i8: the low 8 bits. To bool: x != 0, which holds for NaN."})
	}}
)

// LeakyReluOpts are the parameters of [LeakyRelu].
type LeakyReluOpts struct {
	Slope float32 // factor of negative x; 0 means 0.01
}

// Attrs converts the options to parameters.
func (o LeakyReluOpts) Attrs() Attrs { return Floats(written(o.Slope, LeakyRelu.Params()[0].Default)) }

// EluOpts are the parameters of [Elu].
type EluOpts struct {
	Alpha float32 // magnitude of the limit at -Inf; 0 means 1
}

// Attrs converts the options to parameters.
func (o EluOpts) Attrs() Attrs { return Floats(written(o.Alpha, Elu.Params()[0].Default)) }

// CeluOpts are the parameters of [Celu].
type CeluOpts struct {
	Alpha float32 // magnitude of the limit at -Inf; 0 means 1
}

// Attrs converts the options to parameters.
func (o CeluOpts) Attrs() Attrs { return Floats(written(o.Alpha, Celu.Params()[0].Default)) }

// CastTo returns the parameters of [Cast].
func CastTo(d DType) Attrs { return Attrs{I: [8]int{int(d)}} }
