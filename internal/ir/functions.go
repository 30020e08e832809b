package ir

import (
	"math"
	"sync/atomic"
)

// The functions are the composite codes. Their expansions are a large part of a page, and most pages use none of
// them. What makes nodes of these codes therefore calls [UseFunctions]: the linker leaves the expansions out of programs
// that never do. Other programs have them always.

// functionTable has what only programs with functions need.
type functionTable struct {
	expansions [numCodes]func(l *lowering, a [3]*Node) *Node
	evals      [numCodes]func(a, b, c float64) float64 // as codeInfo.eval
	bounded    func(l *lowering, was, n *Node) *Node
	visit      func(x any)
}

var functions atomic.Pointer[functionTable] // nil before UseFunctions

// UseFunctions lets Lower expand functions. Whoever makes a node whose code is [Code.Composite] must call it before.
//
//go:noinline
func UseFunctions() {
	if functions.Load() == nil {
		functions.Store(newFunctions())
	}
}

// evalOf returns what computes a code in float64.
func evalOf(c Code) func(a, b, c float64) float64 {
	if f := functions.Load(); f != nil && c.Composite() {
		return f.evals[c]
	}
	return codes[c].eval
}

// IfFunctions calls the method WithFunctions of x if the program uses functions. The linker leaves these methods
// out of other programs.
func IfFunctions(x any) {
	if f := functions.Load(); f != nil {
		f.visit(x)
	}
}

func newFunctions() *functionTable {
	return &functionTable{
		bounded: (*lowering).bounded,
		visit:   func(x any) { x.(interface{ WithFunctions() }).WithFunctions() },
		evals: [numCodes]func(a, b, c float64) float64{
			Exp:     func(a, _, _ float64) float64 { return math.Exp(a) },
			Exp2:    func(a, _, _ float64) float64 { return math.Exp2(a) },
			Expm1:   func(a, _, _ float64) float64 { return math.Expm1(a) },
			Log:     func(a, _, _ float64) float64 { return math.Log(a) },
			Log2:    func(a, _, _ float64) float64 { return math.Log2(a) },
			Log1p:   func(a, _, _ float64) float64 { return math.Log1p(a) },
			Tanh:    func(a, _, _ float64) float64 { return math.Tanh(a) },
			Sigmoid: func(a, _, _ float64) float64 { return 1 / (1 + math.Exp(-a)) },
			Erf:     func(a, _, _ float64) float64 { return math.Erf(a) },
			Erfc:    func(a, _, _ float64) float64 { return math.Erfc(a) },
			NormCDF: func(a, _, _ float64) float64 { return 0.5 * math.Erfc(-a/math.Sqrt2) },
			Sin:     func(a, _, _ float64) float64 { return math.Sin(a) },
			Cos:     func(a, _, _ float64) float64 { return math.Cos(a) },
			Atan:    func(a, _, _ float64) float64 { return math.Atan(a) },
			Pow:     func(a, b, _ float64) float64 { return math.Pow(a, b) },
			Recip:   func(a, _, _ float64) float64 { return 1 / a },
			Rsqrt:   func(a, _, _ float64) float64 { return 1 / math.Sqrt(a) },
		},
		expansions: [numCodes]func(l *lowering, a [3]*Node) *Node{
			Exp:     func(l *lowering, a [3]*Node) *Node { return l.exp(a[0]) },
			Exp2:    func(l *lowering, a [3]*Node) *Node { return l.exp2(a[0]) },
			Expm1:   func(l *lowering, a [3]*Node) *Node { return l.expm1(a[0]) },
			Log:     func(l *lowering, a [3]*Node) *Node { return l.log(a[0]) },
			Log2:    func(l *lowering, a [3]*Node) *Node { return l.log2(a[0]) },
			Log1p:   func(l *lowering, a [3]*Node) *Node { return l.log1p(a[0]) },
			Tanh:    func(l *lowering, a [3]*Node) *Node { return l.tanh(a[0]) },
			Sigmoid: func(l *lowering, a [3]*Node) *Node { return l.sigmoid(a[0]) },
			Erf:     func(l *lowering, a [3]*Node) *Node { return l.erf(a[0]) },
			Erfc:    func(l *lowering, a [3]*Node) *Node { return l.erfc(a[0]) },
			NormCDF: func(l *lowering, a [3]*Node) *Node { return l.normCDF(a[0]) },
			Sin:     func(l *lowering, a [3]*Node) *Node { return l.sin(a[0]) },
			Cos:     func(l *lowering, a [3]*Node) *Node { return l.cos(a[0]) },
			Atan:    func(l *lowering, a [3]*Node) *Node { return l.atan(a[0]) },
			Pow:     func(l *lowering, a [3]*Node) *Node { return l.pow(a[0], a[1]) },
			Recip:   func(l *lowering, a [3]*Node) *Node { return div(c(1), a[0]) },
			Rsqrt:   func(l *lowering, a [3]*Node) *Node { return div(c(1), node(Sqrt, a[0])) },
		},
	}
}
