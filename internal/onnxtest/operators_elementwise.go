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
	"And":            elementwise(op.And),
	"Asin":           elementwise(op.Asin),
	"Asinh":          elementwise(op.Asinh),
	"Atan":           elementwise(op.Atan),
	"Atanh":          elementwise(op.Atanh),
	"BitwiseAnd":     elementwise(op.And),
	"BitwiseNot":     bitwiseNot,
	"BitwiseOr":      elementwise(op.Or),
	"BitwiseXor":     elementwise(op.Xor),
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
	"Not":            elementwise(op.Not),
	"Or":             elementwise(op.Or),
	"PRelu":          elementwise(op.PRelu),
	"Reciprocal":     elementwise(op.Recip),
	"Relu":           elementwise(op.Relu),
	"Round":          elementwise(op.Round),
	"Sigmoid":        elementwise(op.Sigmoid),
	"Sign":           elementwise(op.Sign),
	"Sin":            elementwise(op.Sin),
	"Sinh":           elementwise(op.Sinh),
	"Softplus":       elementwise(op.Softplus),
	"Softsign":       elementwise(op.Softsign),
	"Sqrt":           elementwise(op.Sqrt),
	"Sub":            elementwise(op.Sub),
	"Tan":            elementwise(op.Tan),
	"Tanh":           elementwise(op.Tanh),
	"Where":          elementwise(op.Where),
	"Xor":            elementwise(op.Xor),

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
	"BitShift":  bitShift,
	"Mod":       mod,
	"Identity":  func(r *recorder) []batch.Value { return one(r.Reshape(r.x(0), r.shape(0)...)) },
	"LeakyRelu": like(op.LeakyRelu, leakyRelu),
	// Without the operation's tolerance: ONNX's results are exp(x)-1, which cancels.
	"Elu":  elu,
	"Gelu": gelu,

	"Celu": like(op.Celu, func(r *recorder) []batch.Value {
		return one(r.Celu(r.x(0), op.CeluOpts{Alpha: r.float("alpha", 1)}))
	}),
	"HardSigmoid": like(op.HardSigmoid, func(r *recorder) []batch.Value {
		return one(r.HardSigmoid(r.x(0), r.float("alpha", 0.2), r.float("beta", 0.5)))
	}),
	"Shrink": like(op.Shrink, func(r *recorder) []batch.Value {
		return one(r.Shrink(r.x(0), r.float("lambd", 0.5), r.float("bias", 0)))
	}),
	"ThresholdedRelu": like(op.Threshold, func(r *recorder) []batch.Value {
		return one(r.Threshold(r.x(0), r.float("alpha", 1), 0))
	}),
	"Selu": function(func(r *recorder, x op.Expr) op.Expr {
		alpha, gamma := r.constant("alpha", 1.67326319217681884765625), r.constant("gamma", 1.05070102214813232421875)
		return gamma.Mul(op.Select(x.Le(op.Const(0)), alpha.Mul(x.Expm1()), x))
	}),
	"Swish": function(func(r *recorder, x op.Expr) op.Expr {
		return x.Mul(x.Mul(r.constant("alpha", 1)).Sigmoid())
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

// pow takes integral exponents of floats as floats, and integers to the power of floats
// as floats whose fraction is cut off.
func pow(r *recorder) []batch.Value {
	x, y := r.x(0), r.x(1)
	switch t := x.Type(); {
	case t.Float() && y.Type() != t:
		y = r.Cast(y, t)
	case y.Type().Float() && y.Type() != t:
		return one(r.Cast(r.Pow(r.Cast(x, y.Type()), y), t))
	}
	return one(r.Pow(x, y))
}

// bitwiseNot leaves 8 bits of what was uint8 and is held as i32.
func bitwiseNot(r *recorder) []batch.Value {
	y := r.Not(r.x(0))
	if r.c.In[0].Type == Uint8 {
		y = r.And(y, r.whole(255))
	}
	return one(y)
}

func bitShift(r *recorder) []batch.Value {
	if r.text("direction", "") == "RIGHT" {
		return elementwise(op.ShiftRight)(r)
	}
	return elementwise(op.ShiftLeft)(r)
}

// mod has the sign of the divisor, or of the dividend as in C.
func mod(r *recorder) []batch.Value {
	if r.int("fmod", 0) != 0 {
		return elementwise(op.Fmod)(r)
	}
	return elementwise(op.Remainder)(r)
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
