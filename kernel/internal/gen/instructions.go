package main

import (
	"fmt"
	"strings"
)

// instruction is a method of one or more types.
type instruction struct {
	name   string
	code   string // its ir.Code, the name if ""
	flag   string // of the instruction, "" for 0
	args   string // names of the further operands
	result string // "" the type itself, "bool" its Bool
	doc    string // the result of the method
	on     class
	scalar bool   // not for vectors
	form   string // body, if it is not the application of the code
	math   bool   // the code is composite
}

var instructions = []instruction{
	{name: "Add", args: "y", doc: "x + y", on: number},
	{name: "Sub", args: "y", doc: "x - y", on: number},
	{name: "Mul", args: "y", doc: "x * y", on: number},
	{name: "Div", args: "y", doc: "x / y", on: real},
	{name: "Div", code: "IDiv", args: "y", doc: "x / y towards 0. x/0 is x", on: integer},
	{name: "Mod", code: "IMod", args: "y", doc: "x - y*(x/y), which has the sign of x. It is 0 if y is 0", on: integer},
	{name: "Neg", doc: "-x", on: real | signed},
	{name: "Abs", doc: "the magnitude of x", on: real | signed},
	{name: "Min", args: "y", doc: "the lesser of x and y, NaN if either is NaN", on: real},
	{name: "Max", args: "y", doc: "the greater of x and y, NaN if either is NaN", on: real},
	{name: "Min", args: "y", doc: "the lesser of x and y", on: integer},
	{name: "Max", args: "y", doc: "the greater of x and y", on: integer},
	{name: "Fma", args: "y, z", doc: "x*y + z, rounded once", on: real},
	{name: "MulAdd", code: "Fma", flag: "ir.Loose", args: "y, z", doc: "x*y + z, rounded once, or twice on devices where Fma would be slow", on: real},
	{name: "Sqrt", doc: "the square root, correctly rounded; NaN for x < 0", on: real},
	{name: "Floor", doc: "the greatest integer not above x", on: real},
	{name: "Ceil", doc: "the least integer not below x", on: real},
	{name: "Trunc", doc: "x without its fraction", on: real},
	{name: "Round", doc: "the nearest integer, the even one of two", on: real},
	{name: "CopySign", args: "y", doc: "the magnitude of x with the sign of y", on: real},
	{name: "Square", doc: "x * x", on: real, form: "return x.Mul(x)"},

	{name: "Ldexp", args: "y", doc: "x * 2**y for an integral y in [-300, 300]", on: float},
	{name: "Exp", doc: "e to the power x", on: float, math: true},
	{name: "Exp2", doc: "2 to the power x", on: float, math: true},
	{name: "Expm1", doc: "e**x - 1, accurate near 0", on: float, math: true},
	{name: "Log", doc: "the natural logarithm; -Inf at 0, NaN below", on: float, math: true},
	{name: "Log2", doc: "the logarithm to base 2", on: float, math: true},
	{name: "Log1p", doc: "log(1+x), accurate near 0", on: float, math: true},
	{name: "Tanh", doc: "the hyperbolic tangent", on: float, math: true},
	{name: "Sigmoid", doc: "1/(1+e**-x)", on: float, math: true},
	{name: "Erf", doc: "the Gauss error function", on: float, math: true},
	{name: "Erfc", doc: "1-erf(x), accurate for large x", on: float, math: true},
	{name: "NormCDF", doc: "the normal distribution function, accurate for large -x", on: float, math: true},
	{name: "Sin", doc: "the sine of x radians", on: float, math: true},
	{name: "Cos", doc: "the cosine of x radians", on: float, math: true},
	{name: "Atan", doc: "the arc tangent in radians", on: float, math: true},
	{name: "Pow", args: "y", doc: "x to the power y", on: float, math: true},
	{name: "Recip", doc: "1/x", on: float, math: true},
	{name: "Rsqrt", doc: "1/sqrt(x)", on: float, math: true},

	{name: "And", args: "y", doc: "the bits that x and y share", on: integer},
	{name: "Or", args: "y", doc: "the bits of x and y", on: integer},
	{name: "Xor", args: "y", doc: "the bits in which x and y differ", on: integer},
	{name: "Not", doc: "x with every bit flipped", on: integer},
	{name: "Shl", args: "n", doc: "x shifted left by n, which is less than 32", on: integer, form: "shift"},
	{name: "Shr", args: "n", doc: "x shifted right by n, which is less than 32; the sign comes in", on: signed, form: "shift"},
	{name: "Shr", args: "n", doc: "x shifted right by n, which is less than 32; zeros come in", on: unsigned, form: "shift"},
	{name: "CountOnes", doc: "how many bits are set", on: integer},
	{name: "LeadingZeros", doc: "how many bits above the highest that is set are not; 32 for 0", on: integer},
	{name: "TrailingZeros", doc: "how many bits below the lowest that is set are not; 32 for 0", on: integer},
	{name: "ReverseBits", doc: "x with its bits in the opposite order", on: integer},
	{name: "MulHigh", args: "y", doc: "the upper 32 bits of the 64-bit product x * y", on: unsigned},

	{name: "And", args: "y", doc: "whether both hold. Both are computed", on: boolean},
	{name: "Or", args: "y", doc: "whether one of them holds. Both are computed", on: boolean},
	{name: "Xor", args: "y", doc: "whether exactly one of them holds", on: boolean},
	{name: "Not", doc: "the contrary", on: boolean},

	{name: "Eq", args: "y", result: "bool", doc: "x == y", on: number},
	{name: "Ne", args: "y", result: "bool", doc: "x != y; true if either is NaN", on: real},
	{name: "Ne", args: "y", result: "bool", doc: "x != y", on: integer},
	{name: "Lt", args: "y", result: "bool", doc: "x < y", on: number},
	{name: "Le", args: "y", result: "bool", doc: "x <= y", on: number},
	{name: "Gt", args: "y", result: "bool", doc: "x > y", on: number, form: "return y.Lt(x)"},
	{name: "Ge", args: "y", result: "bool", doc: "x >= y", on: number, form: "return y.Le(x)"},
}

// method writes the method of a type.
func (in instruction) method(t valueType) string {
	code := in.code
	if code == "" {
		code = in.name
	}
	result := t.name
	if in.result == "bool" {
		result = t.like("Bool")
	}
	argType := t.name
	body := in.form
	k, from := "k"+result, t.kind()
	switch {
	case in.form == "shift":
		argType = t.like("U32")
		body = fmt.Sprintf("return %s(shift(ir.%s, %s, handle(x), handle(n)))", result, code, k)
	case in.form != "":
	case in.args == "":
		body = fmt.Sprintf("return %s(unary(ir.%s, %s, %s, handle(x)))", result, code, k, from)
	case !strings.Contains(in.args, ","):
		body = fmt.Sprintf("return %s(binary(ir.%s, %s, %s, handle(x), handle(%s)))", result, code, k, from, in.args)
	default:
		flag := in.flag
		if flag == "" {
			flag = "0"
		}
		body = fmt.Sprintf("return %s(ternary(ir.%s, %s, %s, handle(x), handle(y), handle(z)))", result, code, flag, k)
	}
	if in.math {
		body = "ir.UseFunctions(); " + body
	}
	args := in.args
	if args != "" {
		args += " " + argType
	}
	return fmt.Sprintf("// %s returns %s.\nfunc (x %s) %s(%s) %s { %s }\n\n", in.name, in.doc, t.name, in.name, args, result, body)
}

// special are the methods between particular types.
var special = []string{
	method("U32", "Dot4I8", "y U32, acc I32", "I32", "acc plus the sum of the products of the four signed bytes of x and y",
		"return I32(dot4(ir.Dot4I8, kI32, handle(x), handle(y), handle(acc)))"),
	method("U32", "Dot4U8", "y U32, acc U32", "U32", "acc plus the sum of the products of the four unsigned bytes of x and y",
		"return U32(dot4(ir.Dot4U8, kU32, handle(x), handle(y), handle(acc)))"),
	method("Vec2F", "PackHalf", "", "U32", "the components as half floats, the first in the low half, rounded to nearest even",
		"return U32(pack(ir.PackHalf, kU32, kVec2F, handle(x)))"),
	method("U32", "UnpackHalf", "", "Vec2F", "the two half floats in x, the low half first",
		"return Vec2F(pack(ir.UnpackHalf, kVec2F, kU32, handle(x)))"),
	method("Vec4I", "PackI8", "", "U32", "the low bytes of the components, the first lowest",
		"return U32(pack(ir.PackI8, kU32, kVec4I, handle(x)))"),
	method("U32", "UnpackI8", "", "Vec4I", "the four bytes of x as signed numbers, the lowest first",
		"return Vec4I(pack(ir.UnpackI8, kVec4I, kU32, handle(x)))"),
	method("U32", "UnpackU8", "", "Vec4U", "the four bytes of x as unsigned numbers, the lowest first",
		"return Vec4U(pack(ir.UnpackU8, kVec4U, kU32, handle(x)))"),
}

func method(typ, name, args, result, doc, body string) string {
	return fmt.Sprintf("// %s returns %s.\nfunc (x %s) %s(%s) %s { %s }\n\n", name, doc, typ, name, args, result, body)
}
