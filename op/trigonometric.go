package op

import "math"

// Trigonometric and hyperbolic functions, their inverses, and relatives of
// exponentials and logarithms.
var (
	defTan = Operation{define: func() *definition {
		return elementwise(1, "tan", "the tangent of x radians", x.Sin().Div(x.Cos()),
			of{formula: "sin(x) / cos(x)", tol: ulp(6), special: "NaN at NaN and ±Inf; -0 stays -0."})
	}}
	// asin(x) is atan(x / sqrt((1-x)·(1+x))). Near ±1, 1-x and 1+x are exact, while 1-x² would cancel.
	defAsin = Operation{define: func() *definition {
		return elementwise(1, "asin", "the arc sine in radians", x.Div(one.Sub(x).Mul(one.Add(x)).Sqrt()).Atan(),
			of{formula: "asin(x)", tol: ulp(5), special: "NaN for |x| > 1; -0 stays -0."})
	}}
	defAcos = Operation{define: func() *definition {
		return elementwise(1, "acos", "the arc cosine in radians", Const(2).Mul(one.Sub(x).Div(one.Add(x)).Sqrt().Atan()),
			of{formula: "acos(x)", tol: ulp(5), special: "NaN for |x| > 1."})
	}}
	defAtan = Operation{define: func() *definition {
		return elementwise(1, "atan", "the arc tangent in radians", x.Atan(),
			of{tol: ulp(2), special: "NaN stays NaN; ±pi/2 at ±Inf; -0 stays -0."})
	}}
	defAtan2 = Operation{define: func() *definition {
		return elementwise(2, "atan2", "the angle of the point (y, x) in radians, in [-pi, pi]", atan2(x, y),
			of{formula: "atan(y / x), in the quadrant of (x, y)", tol: ulp(4), inputs: []string{"y", "x"}, special: "As in C99, signed zeros and infinities included: 0 at (0, 0), pi at (0, -0), pi/4 at (Inf, Inf). NaN if either is NaN."})
	}}

	defSinh = Operation{define: func() *definition {
		return elementwise(1, "sinh", "the hyperbolic sine", sinh(),
			of{formula: "(e**x - e**-x) / 2", tol: ulp(7), special: "NaN stays NaN; ±Inf beyond ±89.42; -0 stays -0."})
	}}
	defCosh = Operation{define: func() *definition {
		return elementwise(1, "cosh", "the hyperbolic cosine", cosh(),
			of{formula: "(e**x + e**-x) / 2", tol: ulp(7), special: "NaN stays NaN; +Inf beyond ±89.42."})
	}}
	defAsinh = Operation{define: func() *definition {
		return elementwise(1, "asinh", "the inverse hyperbolic sine", asinh(),
			of{formula: "log(x + sqrt(x² + 1))", tol: ulp(4), special: "NaN, infinities and -0 are unchanged."})
	}}
	defAcosh = Operation{define: func() *definition {
		return elementwise(1, "acosh", "the inverse hyperbolic cosine", acosh(),
			of{formula: "log(x + sqrt(x² - 1))", tol: ulp(4), special: "NaN for x < 1; +Inf at +Inf."})
	}}
	defAtanh = Operation{define: func() *definition {
		return elementwise(1, "atanh", "the inverse hyperbolic tangent", atanh(),
			of{formula: "log((1 + x) / (1 - x)) / 2", tol: ulp(4), special: "NaN for |x| > 1; ±Inf at ±1; -0 stays -0."})
	}}

	defExpm1 = Operation{define: func() *definition {
		return elementwise(1, "expm1", "e**x - 1, accurate near 0", x.Expm1(),
			of{tol: ulp(2), special: "NaN stays NaN; +Inf above 88.73, -1 at -Inf; -0 stays -0."})
	}}
	defLog10 = Operation{define: func() *definition {
		return elementwise(1, "log10", "the logarithm to base 10", x.Log().Mul(Const(math.Log10E)),
			of{tol: ulp(4), special: "NaN for x < 0; -Inf at ±0."})
	}}
	defLogAddExp = Operation{define: func() *definition {
		return elementwise(2, "logaddexp", "log(e**x + e**y) without overflow", logAddExp(),
			of{formula: "log(e**x + e**y)", tol: Tolerance{ULP: 3, Mag: 3}, mag: x.Max(y).Abs().Add(one), special: "NaN if either is NaN; -Inf where both are -Inf."})
	}}

	defCbrt = Operation{define: func() *definition {
		return elementwise(1, "cbrt", "the cube root", cbrt(),
			of{formula: "x**(1/3)", tol: ulp(2), special: "NaN, infinities and -0 are unchanged."})
	}}
	defErfinv = Operation{define: func() *definition {
		return elementwise(1, "erfinv", "the inverse of the Gauss error function", erfinv(),
			of{formula: "y with erf(y) = x", tol: ulp(6), special: "NaN for |x| > 1; ±Inf at ±1; -0 stays -0."})
	}}
	defHypot = Operation{define: func() *definition {
		return elementwise(2, "hypot", "the length of the vector (x, y), without overflow", hypot(),
			of{formula: "sqrt(x² + y²)", tol: ulp(3), special: "+Inf if either is infinite, even if the other is NaN; otherwise NaN if either is NaN."})
	}}
)

var (
	infinity = Const(math.Inf(1))
	ln2      = Const(math.Ln2)
	half     = Const(0.5)
)

// large is a number from which on sqrt(x² ± 1) rounds to x. Its square does not overflow.
var large = Const(0x1p30)

// atan2 computes the arc tangent of the smaller magnitude divided by the greater, which is at most 1.
// It subtracts this angle from pi/2 if |y| is the greater, and the result from pi if x is negative.
func atan2(y, x Expr) Expr {
	a, b := x.Abs(), y.Abs()
	most := a.Max(b)
	q := Select(a.Eq(b), one, a.Min(b).Div(most)) // 1 for two infinities too
	q = Select(most.Eq(zero), zero, q)
	angle := q.Atan()
	angle = Select(b.Gt(a), Const(math.Pi/2).Sub(angle), angle)
	angle = Select(one.CopySign(x).Lt(zero), Const(math.Pi).Sub(angle), angle)
	return Select(most.Eq(most), angle.CopySign(y), most)
}

// sinh computes (e + e/(e+1))/2 with e = e**|x| - 1, which does not cancel. For |x| above 80 it
// computes e**|x| / 2.
func sinh() Expr {
	e := x.Abs().Expm1()
	near := half.Mul(e.Add(e.Div(e.Add(one))))
	return Select(x.Abs().Gt(Const(80)), halfExp(), near).CopySign(x)
}

func cosh() Expr {
	e := x.Abs().Exp()
	return Select(x.Abs().Gt(Const(80)), halfExp(), half.Mul(e).Add(half.Div(e)))
}

// halfExp is e**|x| / 2 as e**(|x|-1) · e/2. It overflows only where the result does, in any order
// in which a compiler evaluates it.
func halfExp() Expr {
	return x.Abs().Sub(one).Exp().Mul(Const(math.E / 2))
}

// asinh computes log(a + sqrt(a²+1)) as log1p of a + a²/(1 + sqrt(a²+1)).
func asinh() Expr {
	a := x.Abs()
	s := a.Square()
	near := a.Add(s.Div(one.Add(s.Add(one).Sqrt()))).Log1p()
	return Select(a.Gt(large), a.Log().Add(ln2), near).CopySign(x)
}

// acosh computes log(x + sqrt(x²-1)) as log1p of t + sqrt(t·(t+2)) with t = x-1.
func acosh() Expr {
	t := x.Sub(one)
	near := t.Add(t.Mul(t.Add(Const(2))).Sqrt()).Log1p()
	return Select(x.Lt(one), Const(math.NaN()), Select(x.Gt(large), x.Log().Add(ln2), near))
}

func atanh() Expr {
	a := x.Abs()
	return half.Mul(a.Add(a).Div(one.Sub(a)).Log1p()).CopySign(x)
}

// logAddExp takes 0 as the difference of equal numbers, because that of two infinities would be NaN.
func logAddExp() Expr {
	d := Select(x.Eq(y), zero, x.Sub(y).Abs())
	return x.Max(y).Add(d.Neg().Exp().Log1p())
}

// cbrt computes 2**(log2(x)/3) and improves it by a step of Newton's method, which doubles the number
// of correct digits. It scales a tiny x, because the residual of that would be subnormal.
func cbrt() Expr {
	tiny := x.Abs().Lt(Const(0x1p-100))
	a := Select(tiny, x.Abs().Mul(Const(0x1p60)), x.Abs())
	y := a.Log2().Mul(Const(1.0 / 3)).Exp2()
	s := y.Square()
	y = y.Sub(s.Fma(y, a.Neg()).Div(s.Mul(Const(3))))
	y = Select(tiny, y.Mul(Const(0x1p-20)), y)
	return Select(x.Eq(zero), x, Select(x.Abs().Eq(infinity), x, y.CopySign(x)))
}

// hypot computes m·sqrt(1 + q²), where m is the greater magnitude and q is the other one divided by m.
func hypot() Expr {
	a, b := x.Abs(), y.Abs()
	most := a.Max(b)
	q := a.Min(b).Div(most)
	length := most.Mul(q.Fma(q, one).Sqrt())
	infinite := a.Eq(infinity).Or(b.Eq(infinity))
	return Select(infinite, infinity, Select(most.Eq(zero), most, length))
}

// The coefficients of polynomials for erfinv(x)/x, the constant first, which testdata/fit_erfinv.py
// fits. With w = -log(1-x²), erfinvNear is a polynomial in w - 2.5 for w below 5, and erfinvFar a
// polynomial in √w - 3 for other w.
var (
	erfinvNear = []float64{1.50140941, 0.246640727, -0.00417770771, -0.00125370757, 0.00021860213, -4.39675978e-06, -3.52884172e-06, 3.43725077e-07, 2.85333073e-08}
	erfinvFar  = []float64{2.83297706, 1.00167418, 0.00943590701, -0.00762488274, 0.00575995632, -0.00366178877, 0.00130417279, 8.77807179e-05, -0.000168220038}
)

// erfinv computes 1-x² as (1-x)·(1+x), which stays accurate near ±1.
func erfinv() Expr {
	w := one.Sub(x).Mul(one.Add(x)).Log().Neg()
	near := x.Mul(horner(w.Sub(Const(2.5)), erfinvNear))
	far := x.Mul(horner(w.Sqrt().Sub(Const(3)), erfinvFar))
	return Select(x.Abs().Eq(one), infinity.CopySign(x), Select(w.Lt(Const(5)), near, far))
}

// horner returns the polynomial in v with the given coefficients, the constant first.
func horner(v Expr, coefficients []float64) Expr {
	n := len(coefficients) - 1
	y := Const(coefficients[n])
	for i := n - 1; i >= 0; i-- {
		y = y.Fma(v, Const(coefficients[i]))
	}
	return y
}
