package op

// Classes of numbers, and their sign.
var (
	defIsNaN = Operation{define: func() *definition {
		return test("is_nan", "isnan", "whether x is NaN", x.Ne(x), "True only for NaN.")
	}}
	defIsInf = Operation{define: func() *definition {
		return test("is_inf", "isinf", "whether x is +Inf or -Inf", x.Abs().Eq(infinity), "False for NaN.")
	}}
	defIsFinite = Operation{define: func() *definition {
		return test("is_finite", "isfinite", "whether x is neither NaN nor infinite", x.Abs().Lt(infinity), "False for NaN.")
	}}
	defSignBit = Operation{define: func() *definition {
		return test("sign_bit", "signbit", "whether the sign of x is negative", one.CopySign(x).Lt(zero).And(x.Eq(x)), "True for -0, false for NaN.")
	}}

	defCopySign = Operation{define: func() *definition {
		return elementwise(2, "copy_sign", "the magnitude of x with the sign of y", Select(y.Eq(y), x.CopySign(y), x.Abs()),
			of{aliases: []string{"copysign"}, special: "-0 and -Inf count as negative; NaN in x stays NaN, and NaN in y counts as positive."})
	}}
)

// test defines a predicate of one number.
func test(name, alias, doc string, e Cond, special string) *definition {
	return elementwise(1, name, doc, Expr(e), of{aliases: []string{alias}, types: tests, special: special})
}

// tests is the rule of predicates: an operand of a floating type, a result of Bool.
func tests(a *Attrs, in []DType) ([]DType, error) {
	if _, err := floats(a, in); err != nil {
		return nil, err
	}
	return []DType{Bool}, nil
}
