package ir

import (
	"math"

	"github.com/rayo-go/rayo/internal/fmt"
)

// The codes. Every back end implements the codes up to RoundBF16. Codes from Exp on have expansions
// into these ([Lower]); a back end may instead use a native function that is as accurate.
const (
	None Code = iota

	Arg   // operand Index of the operation, an element of an array
	Param // scalar parameter Index of the operation, the same for all elements
	Const // Value

	Add
	Sub
	Mul
	Div
	Neg
	Abs
	Min      // the lesser operand; NaN if either is NaN
	Max      // the greater operand; NaN if either is NaN
	Fma      // a*b+c, rounded once: see Loose
	Sqrt     // correctly rounded
	Floor    // towards -Inf
	Ceil     // towards +Inf
	Trunc    // towards 0
	Round    // to nearest, halves to even
	CopySign // magnitude of a, sign of b

	Eq // a == b; false if either is NaN
	Ne // a != b; true if either is NaN
	Lt // a < b; false if either is NaN
	Le // a <= b; false if either is NaN

	And // of Bool, or of the bits of integers
	Or
	Xor
	Not

	Shl // integer shift left; counts of 32 and more are not defined
	Shr // shift right: arithmetic for I32, logical for U32

	Select // a if c else b, with operands in the order c, a, b

	Convert // to Type by value: float to integer truncates and saturates, NaN gives 0; to Bool is != 0
	Bitcast // to Type by bits, between F32, I32 and U32
	Ldexp   // a * 2**b for an integral F32 b in [-300, 300], rounded once, with gradual underflow

	RoundF16  // the nearest IEEE 754 binary16 number, to even; Inf from 65520 on
	RoundBF16 // likewise for bfloat16; Inf from 2^128-2^119 on

	Exp     // e**a
	Exp2    // 2**a
	Expm1   // e**a - 1, accurate near 0
	Log     // natural logarithm
	Log2    // logarithm to base 2
	Log1p   // log(1+a), accurate near 0
	Tanh    // hyperbolic tangent
	Sigmoid // 1 / (1 + e**-a)
	Erf     // Gauss error function
	Erfc    // 1 - erf(a), accurate for large a
	NormCDF // erfc(-a/sqrt(2))/2, the normal distribution function, accurate for large -a
	Sin     // a in radians
	Cos     // a in radians
	Atan    // arc tangent, in radians
	Pow     // a**b as math.Pow and NumPy define it
	Recip   // 1/a
	Rsqrt   // 1/sqrt(a)

	// Only expansions use the codes below, for back ends that have such instructions. The
	// instructions are not accurate enough to be functions themselves, but accurate
	// enough for a part of a function.

	Exp2Approx  // 2**a within 1.4 units, for a < 0 within 2.1; 0 where that is below 2^-126
	RecipApprox // 1/a within 1 unit, 0 where that is below 2^-126
	FmaUnit     // a·b + c limited to [0, 1]; 0 if the sum is NaN
	SqrtInRange // the square root, correctly rounded, for a in [2^-96, 2^126]

	// Unfused is never part of an expression. A back end that lists it as native computes an Fma
	// with float64 numbers, which is slow. Expansions then use fewer Fma.

	Unfused

	numCodes
)

// lastCode is the last code that may be part of expressions and programs.
const lastCode = Rsqrt

// codeInfo describes a code. Everything else (type rules, constant
// folding, the float64 reference, names in listings) is derived from it.
type codeInfo struct {
	name  string
	arity int
	// commutes: swapping the first two operands does not change the result, including which NaN or
	// zero it is.
	commutes bool
	// on lists the operand types that the code takes.
	on typeSet
	// eval computes the code in float64: the reference. Composite codes have none here.
	eval func(a, b, c float64) float64
}

type typeSet uint8

const (
	onF32   typeSet = 1 << F32
	onInt   typeSet = 1<<I32 | 1<<U32
	onBool  typeSet = 1 << Bool
	onNum           = onF32 | onInt
	onLogic         = onBool | onInt
	onAny           = onNum | onBool
)

func (s typeSet) has(t Type) bool { return s&(1<<t) != 0 }

var codes = [numCodes]codeInfo{
	Arg:       {name: "arg"},
	Param:     {name: "param"},
	Const:     {name: "const"},
	Add:       {"add", 2, true, onNum, func(a, b, _ float64) float64 { return a + b }},
	Sub:       {"sub", 2, false, onNum, func(a, b, _ float64) float64 { return a - b }},
	Mul:       {"mul", 2, true, onNum, func(a, b, _ float64) float64 { return a * b }},
	Div:       {"div", 2, false, onF32, func(a, b, _ float64) float64 { return a / b }},
	Neg:       {"neg", 1, false, onNum, func(a, _, _ float64) float64 { return -a }},
	Abs:       {"abs", 1, false, onNum, func(a, _, _ float64) float64 { return math.Abs(a) }},
	Min:       {"min", 2, false, onNum, func(a, b, _ float64) float64 { return min(a, b) }},
	Max:       {"max", 2, false, onNum, func(a, b, _ float64) float64 { return max(a, b) }},
	Fma:       {"fma", 3, true, onF32, math.FMA},
	Sqrt:      {"sqrt", 1, false, onF32, func(a, _, _ float64) float64 { return math.Sqrt(a) }},
	Floor:     {"floor", 1, false, onF32, func(a, _, _ float64) float64 { return math.Floor(a) }},
	Ceil:      {"ceil", 1, false, onF32, func(a, _, _ float64) float64 { return math.Ceil(a) }},
	Trunc:     {"trunc", 1, false, onF32, func(a, _, _ float64) float64 { return math.Trunc(a) }},
	Round:     {"round", 1, false, onF32, func(a, _, _ float64) float64 { return math.RoundToEven(a) }},
	CopySign:  {"copysign", 2, false, onF32, func(a, b, _ float64) float64 { return math.Copysign(a, b) }},
	RoundF16:  {"round_f16", 1, false, onF32, func(a, _, _ float64) float64 { return float64(NearestHalf(a)) }},
	RoundBF16: {"round_bf16", 1, false, onF32, func(a, _, _ float64) float64 { return float64(NearestBrain(a)) }},
	Eq:        {"eq", 2, true, onNum, func(a, b, _ float64) float64 { return truth(a == b) }},
	Ne:        {"ne", 2, true, onNum, func(a, b, _ float64) float64 { return truth(a != b) }},
	Lt:        {"lt", 2, false, onNum, func(a, b, _ float64) float64 { return truth(a < b) }},
	Le:        {"le", 2, false, onNum, func(a, b, _ float64) float64 { return truth(a <= b) }},
	And:       {"and", 2, true, onLogic, func(a, b, _ float64) float64 { return float64(int64(a) & int64(b)) }},
	Or:        {"or", 2, true, onLogic, func(a, b, _ float64) float64 { return float64(int64(a) | int64(b)) }},
	Xor:       {"xor", 2, true, onLogic, func(a, b, _ float64) float64 { return float64(int64(a) ^ int64(b)) }},
	Not:       {"not", 1, false, onLogic, nil}, // depends on the type: see Eval
	Shl:       {"shl", 2, false, onInt, func(a, b, _ float64) float64 { return float64(int64(a) << (uint64(b) & 31)) }},
	Shr:       {"shr", 2, false, onInt, func(a, b, _ float64) float64 { return float64(int64(a) >> (uint64(b) & 31)) }},
	Select: {"select", 3, false, onAny, func(c, a, b float64) float64 {
		if c != 0 {
			return a
		}
		return b
	}},
	Convert: {"convert", 1, false, onAny, nil}, // depends on the types: see Eval
	Bitcast: {"bitcast", 1, false, onNum, nil}, // likewise
	Ldexp:   {"ldexp", 2, false, onF32, func(a, b, _ float64) float64 { return math.Ldexp(a, int(max(-2000, min(2000, b)))) }},

	// The table of functions has what computes these: see UseFunctions.
	Exp:     {"exp", 1, false, onF32, nil},
	Exp2:    {"exp2", 1, false, onF32, nil},
	Expm1:   {"expm1", 1, false, onF32, nil},
	Log:     {"log", 1, false, onF32, nil},
	Log2:    {"log2", 1, false, onF32, nil},
	Log1p:   {"log1p", 1, false, onF32, nil},
	Tanh:    {"tanh", 1, false, onF32, nil},
	Sigmoid: {"sigmoid", 1, false, onF32, nil},
	Erf:     {"erf", 1, false, onF32, nil},
	Erfc:    {"erfc", 1, false, onF32, nil},
	NormCDF: {"normcdf", 1, false, onF32, nil},
	Sin:     {"sin", 1, false, onF32, nil},
	Cos:     {"cos", 1, false, onF32, nil},
	Atan:    {"atan", 1, false, onF32, nil},
	Pow:     {"pow", 2, false, onF32, nil},
	Recip:   {"recip", 1, false, onF32, nil},
	Rsqrt:   {"rsqrt", 1, false, onF32, nil},

	Exp2Approx:  {"exp2near", 1, false, onF32, func(a, _, _ float64) float64 { return math.Exp2(a) }},
	RecipApprox: {"recipnear", 1, false, onF32, func(a, _, _ float64) float64 { return 1 / a }},
	FmaUnit: {"fmaunit", 3, false, onF32, func(a, b, c float64) float64 {
		if v := math.FMA(a, b, c); v > 0 {
			return min(v, 1)
		}
		return 0
	}},
	SqrtInRange: {"sqrtnear", 1, false, onF32, func(a, _, _ float64) float64 { return math.Sqrt(a) }},
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// String returns the name of the code in listings and in generated symbols.
func (c Code) String() string {
	if c < numCodes && codes[c].name != "" {
		return codes[c].name
	}
	if c >= BuiltIn && c < numInstrCodes {
		return instrs[c-BuiltIn].name
	}
	return fmt.Sprintf("Code(%d)", uint8(c))
}

// Arity returns the number of operands of the code.
func (c Code) Arity() int {
	if c < numCodes {
		return codes[c].arity
	}
	return 0
}

// Commutes reports whether swapping the first two operands never changes the result.
func (c Code) Commutes() bool { return c < numCodes && codes[c].commutes }

// Composite reports whether the code has an expansion into simpler ones.
func (c Code) Composite() bool { return c >= Exp && c <= lastCode }

// Codes returns every code that computes a value, in the order of the table.
func Codes() []Code {
	var cs []Code
	for c := Add; c <= lastCode; c++ {
		cs = append(cs, c)
	}
	return cs
}
