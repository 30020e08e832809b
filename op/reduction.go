package op

import (
	"math"

	"github.com/rayo-go/rayo/internal/ir"
)

// The values of Attrs.I[0] of a reduction.
const (
	AllElements = 0 // all elements become one element of shape []
	AlongRows   = 1 // each row, along the last axis, becomes one element
)

// Rows returns a with the reduction set to [AlongRows].
func (a Attrs) Rows() Attrs {
	a.I[0] = AlongRows
	return a
}

// VarOpts are the parameters of [Var].
type VarOpts struct {
	// DDOF is subtracted from the number of elements in the divisor: 0 gives
	// the variance of the elements, 1 the estimate for the population.
	DDOF int
	// Along are the axes along which batches reduce: see [Axes]. The zero value
	// means all axes, without KeepDims.
	Along Along
}

// Attrs converts the options to parameters.
func (o VarOpts) Attrs() Attrs { return Attrs{I: [8]int{1: o.DDOF}} }

// AlongOf returns the axes that options name, as the methods of package batch take
// them.
func AlongOf(opts []VarOpts) []Along {
	var along []Along
	for _, o := range opts {
		if o.Along != (Along{}) {
			along = append(along, o.Along)
		}
	}
	return along
}

// VarOptsOf returns the options from which [VarOpts.Attrs] made a. Along is not part of it.
func VarOptsOf(a *Attrs) VarOpts { return VarOpts{DDOF: a.I[1]} }

// rowReducer reduces one row in float64 and returns the value and the magnitude that
// Tolerance.Mag refers to. y is the row of the second operand of dot, else nil.
type rowReducer func(a *Attrs, x, y []float64) (v, mag float64)

// reduces holds the properties that differ between reductions.
type reduces struct {
	formula, special string
	inputs           []string
	options          string
	types            typeRule
	tol              Tolerance
	nonempty         bool    // there is no result for 0 elements
	fold             foldOf  // or nil
	flops            float64 // for each element
}

func reduction(name, doc string, f rowReducer, s reduces) *definition {
	if s.inputs == nil {
		s.inputs = operandNames[:1]
	}
	n := len(s.inputs)
	return add(&definition{name: name, class: Reduction, doc: doc, formula: s.formula, special: s.special, options: s.options,
		arity: [2]int{n, n}, inputs: s.inputs, types: s.types, tol: s.tol,
		shape: func(a *Attrs, in []Shape) ([]Shape, error) { return reducedShape(a, in, s.nonempty) },
		fold:  s.fold,
		ref: func(a *Attrs, in, out []*Array) {
			if f == nil || !in[0].typ.Float() {
				reduceByFold(s.fold(register(in[0].typ)), in[0], out[0])
				return
			}
			reduceRows(a, in, out[0], f)
		},
		flops: func(_ *Attrs, in, _ []Shape) float64 { return s.flops * elements(in[0]) }})
}

// blocked returns the tolerance of sums in float32.
func blocked() Tolerance { return Tolerance{ULP: 1, Mag: 1} }

// Reductions.
var (
	defSum = Operation{define: func() *definition {
		return reduction("sum", "the sum", reduceSum,
			reduces{formula: "Σ x", tol: blocked(), flops: 1, types: totals, fold: foldSum,
				special: "IEEE 754; 0 for no elements. A partial sum that overflows is infinite even if the complete sum would not be. Integers wrap around. The sum of a bool array is an i32, the number of true elements."})
	}}
	defProd = Operation{define: func() *definition {
		return reduction("prod", "the product", reduceProd,
			reduces{formula: "Π x", tol: blocked(), flops: 1, types: numbers, fold: foldProd,
				special: "IEEE 754; 1 for no elements. Factors are multiplied in any order: the result is not defined where the product of all factors with magnitudes above 1, or of all with magnitudes below 1, leaves the range of normal numbers. Integers wrap around."})
	}}
	defDot = Operation{define: func() *definition {
		return reduction("dot", "the sum of the products", reduceDot,
			reduces{formula: "Σ x * y", inputs: []string{"x", "y"}, tol: blocked(), flops: 2,
				special: "IEEE 754; 0 for no elements. Products and partial sums overflow as in sum."})
	}}
	defMean = Operation{define: func() *definition {
		return reduction("mean", "the arithmetic mean", reduceMean,
			reduces{formula: "Σ x / n", tol: blocked(), flops: 1, fold: foldMean, special: "NaN for no elements. Partial sums overflow as in sum."})
	}}
	defVar = Operation{define: func() *definition {
		return reduction("var", "the variance", reduceVar,
			reduces{formula: "Σ (x - mean(x))² / max(n - ddof, 0)", tol: blocked(), flops: 3, options: "VarOpts", fold: foldVar,
				special: "NaN for no elements, and for one element with ddof = 1, as in NumPy; NaN if an element is infinite. Elements of opposite signs near the limits of float32 may give infinity or NaN."})
	}}
	defMin = Operation{define: func() *definition {
		return reduction("min", "the least element", reduceMin,
			reduces{formula: "min x", flops: 1, nonempty: true, types: numbers, fold: foldMin,
				special: "NaN if any is NaN; -0 and +0 count as equal, and either may result. The error is ErrShape if the operand has no elements."})
	}}
	defMax = Operation{define: func() *definition {
		return reduction("max", "the greatest element", reduceMax,
			reduces{formula: "max x", flops: 1, nonempty: true, types: numbers, fold: foldMax,
				special: "NaN if any is NaN; -0 and +0 count as equal, and either may result. The error is ErrShape if the operand has no elements."})
	}}
	defArgMin = Operation{define: func() *definition {
		return reduction("argmin", "the index of the least element", reduceArgMin,
			reduces{formula: "the least i with x[i] = min x", types: indexes, flops: 1, nonempty: true, fold: foldArgMin,
				special: "The first of equal elements, and the first NaN if there is one. The error is ErrShape if the operand has no elements."})
	}}
	defArgMax = Operation{define: func() *definition {
		return reduction("argmax", "the index of the greatest element", reduceArgMax,
			reduces{formula: "the least i with x[i] = max x", types: indexes, flops: 1, nonempty: true, fold: foldArgMax,
				special: "The first of equal elements, and the first NaN if there is one. The error is ErrShape if the operand has no elements."})
	}}
	defNormL1 = Operation{define: func() *definition {
		return reduction("norm_l1", "the sum of the magnitudes", reduceNormL1,
			reduces{formula: "Σ |x|", tol: blocked(), flops: 2, fold: foldNormL1, special: "NaN if any is NaN, else +Inf if any is infinite; 0 for no elements."})
	}}
	defNormL2 = Operation{define: func() *definition {
		return reduction("norm_l2", "the Euclidean length", reduceNormL2,
			reduces{formula: "sqrt(Σ x²)", tol: blocked(), flops: 2, fold: foldNormL2,
				special: "NaN if any is NaN, else +Inf if any is infinite; 0 for no elements. Squares are computed in float32: the result may be +Inf where a square or the sum of squares is beyond 2^128, and magnitudes below 2^-63 may count as 0."})
	}}
	defNormLinf = Operation{define: func() *definition {
		return reduction("norm_linf", "the greatest magnitude", reduceNormLinf,
			reduces{formula: "max |x|", flops: 1, nonempty: true, fold: foldNormLinf, special: "NaN if any is NaN. The error is ErrShape if the operand has no elements."})
	}}
	defLogSumExp = Operation{define: func() *definition {
		return reduction("logsumexp", "the logarithm of the sum of the exponentials", reduceLogSumExp,
			reduces{formula: "log(Σ e**x)", tol: Tolerance{ULP: 4, Mag: 1}, flops: 4, fold: foldLogSumExp,
				special: "Large elements do not overflow. NaN if any element is NaN, otherwise +Inf if any is +Inf; -Inf for no elements, and where all elements are -Inf."})
	}}
	defAny = Operation{define: func() *definition {
		return reduction("any", "whether an element is not 0", nil,
			reduces{formula: "∃ x != 0", types: truths, flops: 1, fold: foldAny, special: "NaN counts as not 0. False for no elements."})
	}}
	defAll = Operation{define: func() *definition {
		return reduction("all", "whether no element is 0", nil,
			reduces{formula: "∀ x != 0", types: truths, flops: 1, fold: foldAll, special: "NaN counts as not 0. True for no elements."})
	}}
	defCountNonzero = Operation{define: func() *definition {
		return reduction("count_nonzero", "the number of nonzero elements", nil,
			reduces{formula: "Σ [x != 0]", types: counts, flops: 1, fold: foldCount, special: "NaN counts as not 0. The result is an i32; 0 for no elements."})
	}}
)

// totals is the rule numbers, extended to Bool, whose result is I32.
func totals(a *Attrs, in []DType) ([]DType, error) {
	if in[0] == Bool {
		return []DType{I32}, nil
	}
	return numbers(a, in)
}

// truths accepts an operand of any type, with a result of Bool; counts does so with I32.
func truths(_ *Attrs, in []DType) ([]DType, error) { return given(in, Bool) }
func counts(_ *Attrs, in []DType) ([]DType, error) { return given(in, I32) }

func given(in []DType, d DType) ([]DType, error) {
	if _, err := same(in, func(d DType) bool { return register(d) != ir.Invalid && !d.Storage() }); err != nil {
		return nil, err
	}
	return []DType{d}, nil
}

// indexes accepts an operand of a floating type, I32 or U32, with a result of I32.
func indexes(a *Attrs, in []DType) ([]DType, error) {
	if _, err := numbers(a, in); err != nil {
		return nil, err
	}
	return []DType{I32}, nil
}

func reducedShape(a *Attrs, in []Shape, nonempty bool) ([]Shape, error) {
	for _, s := range in[1:] {
		if !s.Equal(in[0]) {
			return nil, mismatch("operands have shapes %v and %v: they must be equal", in[0], s)
		}
	}
	n, err := in[0].Size()
	if err != nil {
		return nil, err
	}
	rows, cols := 1, n
	out := Shape{}
	switch a.I[0] {
	case AllElements:
	case AlongRows:
		rows, cols = in[0].Rows()
		if len(in[0]) > 0 {
			out = append(out, in[0][:len(in[0])-1]...)
		}
	default:
		return nil, mismatch("axis mode %d: expected %d or %d", a.I[0], AllElements, AlongRows)
	}
	if nonempty && cols == 0 && rows > 0 {
		return nil, mismatch("the rows of %v have no elements: this reduction needs at least one", in[0])
	}
	if cols > math.MaxInt32 {
		// Indices and counts are 32-bit integers on every device.
		return nil, mismatch("reduction of %d elements: at most 2^31-1 are supported", cols)
	}
	if a.I[1] < 0 || a.I[1] > math.MaxInt32 {
		return nil, mismatch("DDOF is %d: expected 0 to 2^31-1", a.I[1])
	}
	return []Shape{out}, nil
}

// reduceRows applies f to each row, or to all elements as one row.
func reduceRows(a *Attrs, in []*Array, out *Array, f rowReducer) {
	x := in[0]
	if len(out.Data) == 0 {
		return
	}
	out.Mag = make([]float64, len(out.Data))
	cols := len(x.Data) / len(out.Data)
	for i := range out.Data {
		var y []float64
		if in[1] != nil {
			y = in[1].Data[i*cols:][:cols]
		}
		out.Data[i], out.Mag[i] = f(a, x.Data[i*cols:][:cols], y)
	}
}

// sumOf returns the sum of f over the elements, and the sum of the magnitudes of these terms.
func sumOf(x []float64, f func(i int, v float64) float64) (s, mag float64) {
	for i, v := range x {
		t := f(i, v)
		s += t
		mag += math.Abs(t)
	}
	return s, mag
}

func itself(_ int, v float64) float64 { return v }

func reduceSum(_ *Attrs, x, _ []float64) (v, mag float64) {
	v, mag = sumOf(x, itself)
	return v, mag * Depth(len(x))
}

func reduceDot(_ *Attrs, x, y []float64) (v, mag float64) {
	lost := 0.0
	v, mag = sumOf(x, func(i int, v float64) float64 {
		lost += underflow(v * y[i])
		return v * y[i]
	})
	return v, mag*Depth(len(x)) + lost
}

// product is a product whose factors devices may multiply in any order.
type product struct {
	v            float64
	above, below float64 // base-2 logarithms of the product of the factors with magnitudes above 1, and of the others
	special      bool    // some factors are 0 or not finite
}

func newProduct() product { return product{v: 1} }

func (p *product) take(x float64) {
	p.v *= x
	switch l := math.Log2(math.Abs(x)); {
	case l-l != 0:
		p.special = true
	case l > 0:
		p.above += l
	default:
		p.below += l
	}
}

// mag returns the magnitude that Tolerance.Mag refers to: the product is rounded once for each of n
// factors.
func (p *product) mag(n int) float64 {
	switch {
	case p.above >= 127 || p.below <= -125:
		return math.Inf(1)
	case p.special && p.v-p.v != 0 || p.v == 0:
		return 0
	}
	return math.Abs(p.v) * (float64(n)/2 + 1)
}

func reduceProd(_ *Attrs, x, _ []float64) (v, mag float64) {
	p := newProduct()
	for _, e := range x {
		p.take(e)
	}
	return p.v, p.mag(len(x))
}

// reduceLogSumExp adds the relative error of the sum to the magnitude, because it is an absolute
// error of the logarithm.
func reduceLogSumExp(_ *Attrs, x, _ []float64) (v, mag float64) {
	m := math.Inf(-1)
	for _, e := range x {
		m = max(m, e)
	}
	if m-m != 0 {
		return m, 0
	}
	_, sum, share := shifted(x)
	return m + math.Log(sum), math.Abs(m) + 2*math.Log(sum) + share + 6*Depth(len(x))
}

func reduceMean(_ *Attrs, x, _ []float64) (v, mag float64) {
	v, mag = sumOf(x, itself)
	n := float64(len(x))
	return v / n, mag * Depth(len(x)) / n
}

// reduceVar includes in the bound the square of the error of the mean that a device subtracts. The
// bound allows the two-pass formula, but not the difference of the mean square and the squared mean,
// which cancels.
func reduceVar(a *Attrs, x, _ []float64) (v, mag float64) {
	n := float64(len(x))
	mean, abs := sumOf(x, itself)
	mean /= n
	v, _ = sumOf(x, func(_ int, v float64) float64 { return (v - mean) * (v - mean) })
	d := Depth(len(x))
	off := d * abs / n
	mag = v*(d+2) + n*epsilon*off*off
	n -= float64(VarOptsOf(a).DDOF)
	return v / max(n, 0), mag / max(n, 0)
}

func reduceMin(_ *Attrs, x, _ []float64) (v, mag float64) {
	v = x[0]
	for _, e := range x {
		v = min(v, e)
	}
	return v, 0
}

func reduceMax(_ *Attrs, x, _ []float64) (v, mag float64) {
	v = x[0]
	for _, e := range x {
		v = max(v, e)
	}
	return v, 0
}

func reduceArgMin(_ *Attrs, x, _ []float64) (v, mag float64) {
	return first(x, func(a, b float64) bool { return a < b }), 0
}

func reduceArgMax(_ *Attrs, x, _ []float64) (v, mag float64) {
	return first(x, func(a, b float64) bool { return a > b }), 0
}

// first returns the index of the best element, and the first of them if several are equally good.
// NaN is better than any number.
func first(x []float64, better func(a, b float64) bool) float64 {
	at := 0
	for i, v := range x {
		if x[at] == x[at] && (v != v || better(v, x[at])) {
			at = i
		}
	}
	return float64(at)
}

func reduceNormL1(_ *Attrs, x, _ []float64) (v, mag float64) {
	v, mag = sumOf(x, func(_ int, v float64) float64 { return math.Abs(v) })
	return v, mag * Depth(len(x))
}

func reduceNormL2(_ *Attrs, x, _ []float64) (v, mag float64) {
	s, infinite := 0.0, false
	for _, e := range x {
		s += e * e
		infinite = infinite || math.IsInf(e, 0)
	}
	v = math.Sqrt(s)
	switch {
	case s != s || infinite || s == 0:
		mag = 0
	case s >= overflow:
		mag = math.Inf(1)
	default:
		// Squares that underflow lose at most half the least subnormal each.
		lost := float64(len(x)) * minNormal
		mag = v*Depth(len(x))/2 + (math.Sqrt(s+lost)-v)/epsilon
	}
	return v, mag
}

func reduceNormLinf(_ *Attrs, x, _ []float64) (v, mag float64) {
	for _, e := range x {
		v = max(v, math.Abs(e))
	}
	return v, 0
}

// elements returns the size of a shape that has been checked.
func elements(s Shape) float64 {
	n := 1.0
	for _, d := range s {
		n *= float64(d)
	}
	return n
}
