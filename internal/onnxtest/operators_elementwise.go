package onnxtest

import (
	"math"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

var elementwiseOperators = map[string]mapping{
	"Abs":            elementwise(op.Abs),
	"Acos":           elementwise(op.Acos),
	"Acosh":          elementwise(op.Acosh),
	"Add":            elementwise(op.Add),
	"Asin":           elementwise(op.Asin),
	"Asinh":          elementwise(op.Asinh),
	"Atan":           elementwise(op.Atan),
	"Atanh":          elementwise(op.Atanh),
	"Ceil":           elementwise(op.Ceil),
	"Cos":            elementwise(op.Cos),
	"Cosh":           elementwise(op.Cosh),
	"Div":            elementwise(op.Div),
	"Equal":          elementwise(op.Equal),
	"Erf":            elementwise(op.Erf),
	"Exp":            elementwise(op.Exp),
	"Floor":          elementwise(op.Floor),
	"Greater":        elementwise(op.Greater),
	"GreaterOrEqual": elementwise(op.GreaterEqual),
	"HardSwish":      elementwise(op.HardSwish),
	"Less":           elementwise(op.Less),
	"LessOrEqual":    elementwise(op.LessEqual),
	"Log":            elementwise(op.Log),
	"Mish":           elementwise(op.Mish),
	"Mul":            elementwise(op.Mul),
	"Neg":            elementwise(op.Neg),
	"Reciprocal":     elementwise(op.Recip),
	"Relu":           elementwise(op.Relu),
	"Round":          elementwise(op.Round),
	"Sigmoid":        elementwise(op.Sigmoid),
	"Sign":           elementwise(op.Sign),
	"Sin":            elementwise(op.Sin),
	"Sinh":           elementwise(op.Sinh),
	"Softplus":       elementwise(op.Softplus),
	"Sqrt":           elementwise(op.Sqrt),
	"Sub":            elementwise(op.Sub),
	"Tan":            elementwise(op.Tan),
	"Tanh":           elementwise(op.Tanh),
	"Where":          elementwise(op.Where),

	"Max": fold((*batch.Batch).Maximum),
	"Min": fold((*batch.Batch).Minimum),
	"Sum": fold((*batch.Batch).Add),
	"Mean": func(r *recorder) []batch.Value {
		return one(r.Scale(fold((*batch.Batch).Add)(r)[0], 1/float32(len(r.c.In))))
	},

	"Clip":      like(op.Clip, clip),
	"Dropout":   dropout,
	"IsInf":     isInf,
	"IsNaN":     elementwise(op.IsNaN),
	"Pow":       like(op.Pow, pow),
	"PRelu":     prelu,
	"Identity":  func(r *recorder) []batch.Value { return one(r.Reshape(r.x(0), r.shape(0)...)) },
	"LeakyRelu": like(op.LeakyRelu, leakyRelu),
	// Without the operation's tolerance: ONNX's results are exp(x)-1, which cancels.
	"Elu":  elu,
	"Gelu": gelu,

	"Celu": function(func(r *recorder, x op.Expr) op.Expr {
		alpha := r.constant("alpha", 1)
		return x.Max(op.Const(0)).Add(alpha.Mul(x.Div(alpha).Expm1()).Min(op.Const(0)))
	}),
	"HardSigmoid": function(func(r *recorder, x op.Expr) op.Expr {
		return x.Fma(r.constant("alpha", 0.2), r.constant("beta", 0.5)).Max(op.Const(0)).Min(op.Const(1))
	}),
	"Selu": function(func(r *recorder, x op.Expr) op.Expr {
		alpha, gamma := r.constant("alpha", 1.67326319217681884765625), r.constant("gamma", 1.05070102214813232421875)
		return gamma.Mul(op.Select(x.Le(op.Const(0)), alpha.Mul(x.Expm1()), x))
	}),
	"Shrink": function(func(r *recorder, x op.Expr) op.Expr {
		bias, edge := r.constant("bias", 0), r.constant("lambd", 0.5)
		return op.Select(x.Lt(edge.Neg()), x.Add(bias), op.Select(x.Gt(edge), x.Sub(bias), op.Const(0)))
	}),
	"Softsign": function(func(_ *recorder, x op.Expr) op.Expr { return x.Div(x.Abs().Add(op.Const(1))) }),
	"Swish": function(func(r *recorder, x op.Expr) op.Expr {
		return x.Mul(x.Mul(r.constant("alpha", 1)).Sigmoid())
	}),
	"ThresholdedRelu": function(func(r *recorder, x op.Expr) op.Expr {
		return op.Select(x.Gt(r.constant("alpha", 1)), x, op.Const(0))
	}),
}

func clip(r *recorder) []batch.Value {
	y := r.x(0)
	if r.has(1) {
		y = r.Maximum(y, r.x(1))
	}
	if r.has(2) {
		y = r.Minimum(y, r.x(2))
	}
	return one(r.Reshape(y, y.Shape()...))
}

// dropout passes everything where it does not train, or drops nothing.
func dropout(r *recorder) []batch.Value {
	if r.scalar(2, 0) != 0 && r.scalar(1, 0.5) != 0 {
		return r.refuse("training draws random numbers of no stated generator")
	}
	x := r.x(0)
	return []batch.Value{r.Reshape(x, r.shape(0)...), r.Equal(r.Map(op.Sign, x), r.Map(op.Sign, x))}
}

func isInf(r *recorder) []batch.Value {
	x, inf := r.x(0), r.Cast(r.Const(float32(math.Inf(1))), r.x(0).Type())
	switch up, down := r.int("detect_positive", 1) != 0, r.int("detect_negative", 1) != 0; {
	case up && down:
		return one(r.IsInf(x))
	case up:
		return one(r.Equal(x, inf))
	case down:
		return one(r.Equal(r.Neg(x), inf))
	}
	return r.refuse("detects nothing")
}

// pow takes integral exponents of floats as floats.
func pow(r *recorder) []batch.Value {
	x, y := r.x(0), r.x(1)
	if x.Type().Float() && y.Type() != x.Type() {
		y = r.Cast(y, x.Type())
	}
	return one(r.Pow(x, y))
}

func prelu(r *recorder) []batch.Value {
	x := r.x(0)
	return one(r.Where(r.Less(x, r.Cast(r.Const(0), x.Type())), r.Mul(x, r.x(1)), x))
}

func leakyRelu(r *recorder) []batch.Value {
	return one(r.LeakyRelu(r.x(0), op.LeakyReluOpts{Slope: r.float("alpha", 0.01)}))
}

func elu(r *recorder) []batch.Value {
	return one(r.Elu(r.x(0), op.EluOpts{Alpha: r.float("alpha", 1)}))
}

func gelu(r *recorder) []batch.Value {
	if r.text("approximate", "none") == "tanh" {
		return elementwise(op.GeluTanh)(r)
	}
	return elementwise(op.Gelu)(r)
}
