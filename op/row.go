package op

import "math"

// NormOpts are the parameters of [LayerNorm] and [RMSNorm].
type NormOpts struct {
	Eps float32 // added to the variance or mean square; 0 means 1e-5
}

// Attrs converts the options to parameters.
func (o NormOpts) Attrs() Attrs { return Floats(written(o.Eps, normEps)) }

// NormOptsOf returns the options from which [NormOpts.Attrs] made a. An Eps of 0 in the result is the number 0, not the
// default.
func NormOptsOf(a *Attrs) NormOpts { return NormOpts{Eps: a.read(0, normEps)} }

const normEps = 1e-5

var normParams = []Param{{Name: "eps", Doc: "added to the variance or mean square", Default: normEps}}

// rowFunction computes one row in float64: the results y, and mag, the magnitudes that
// Tolerance.Mag refers to. gamma and beta are nil if absent.
type rowFunction func(a *Attrs, x, gamma, beta, y, mag []float64)

func row(o *definition, f rowFunction, flops float64) *definition {
	o.class = Row
	o.arity = [2]int{1, len(o.inputs)}
	o.shape = rowShape
	o.ref = func(a *Attrs, in, out []*Array) {
		y := out[0]
		y.Mag = make([]float64, len(y.Data))
		_, cols := y.Shape.Rows()
		weights := func(w *Array) []float64 {
			if w == nil {
				return nil
			}
			return w.Data
		}
		for i := 0; i < len(y.Data); i += cols {
			f(a, in[0].Data[i:i+cols], weights(in[1]), weights(in[2]), y.Data[i:i+cols], y.Mag[i:i+cols])
		}
	}
	o.flops = func(_ *Attrs, in, _ []Shape) float64 { return flops * elements(in[0]) }
	return add(o)
}

// Row operations.
var (
	defSoftmax = Operation{define: func() *definition {
		return row(&definition{name: "softmax", doc: "the exponentials of a row divided by their sum",
			formula: "e**(x - max x) / Σ e**(x - max x)", inputs: []string{"x"}, tol: Tolerance{ULP: 4, Mag: 1, Abs: 0x1p-147},
			special: "A row with NaN or +Inf gives NaN, and so does a row of only -Inf; in other rows -Inf gives 0. An empty row gives an empty row."},
			softmaxRow, 4)
	}}

	defLogSoftmax = Operation{define: func() *definition {
		return row(&definition{name: "log_softmax", doc: "the logarithm of softmax, without underflow",
			formula: "x - max x - log(Σ e**(x - max x))", inputs: []string{"x"}, tol: Tolerance{ULP: 4, Mag: 1},
			special: "A row with NaN or +Inf gives NaN, and so does a row of only -Inf; in other rows -Inf stays -Inf. An empty row gives an empty row."},
			logSoftmaxRow, 4)
	}}

	defLayerNorm = Operation{define: func() *definition {
		return row(&definition{name: "layer_norm", doc: "a row shifted to mean 0 and scaled to variance 1, then times gamma plus beta",
			formula: "(x - mean(x)) / sqrt(var(x) + eps) * gamma + beta", inputs: []string{"x", "gamma", "beta"},
			options: "NormOpts", params: normParams, tol: Tolerance{ULP: 4, Mag: 1},
			special: "A row with NaN or an infinity gives NaN. Squares are computed in float32: the result is not defined for rows whose sum of squares is beyond 2^127."},
			layerNormRow, 8)
	}}

	defRMSNorm = Operation{define: func() *definition {
		return row(&definition{name: "rms_norm", doc: "a row divided by its root mean square, then times gamma",
			formula: "x / sqrt(mean(x²) + eps) * gamma", inputs: []string{"x", "gamma"},
			options: "NormOpts", params: normParams, tol: Tolerance{ULP: 4, Mag: 1},
			special: "A row with NaN gives NaN; a row with an infinity gives NaN at the infinity and 0 elsewhere. Squares are computed in float32: the result is not defined for rows whose sum of squares is finite and beyond 2^127."},
			rmsNormRow, 4)
	}}
)

func rowShape(a *Attrs, in []Shape) ([]Shape, error) {
	x := in[0]
	if len(x) == 0 {
		return nil, mismatch("the operand is a scalar: it needs one extent or more")
	}
	for _, w := range in[1:] {
		if w != nil && (len(w) != 1 || w[0] != x[len(x)-1]) {
			return nil, mismatch("weights %v for rows of %v: expected %v", w, x, x[len(x)-1:])
		}
	}
	return []Shape{x}, nil
}

// shifted returns d, the elements minus the greatest element, and the sum of e**d. share bounds
// the relative error of the sum that the errors of d and of the exponentials cause, in units of ε.
func shifted(x []float64) (d []float64, sum, share float64) {
	m := math.Inf(-1)
	for _, v := range x {
		m = max(m, v)
	}
	d = make([]float64, len(x))
	for i, v := range x {
		d[i] = v - m
		if e := math.Exp(d[i]); e != 0 {
			sum += e
			share += e * (-d[i]/2 + 2)
		}
		if d[i] != d[i] {
			sum = math.NaN()
		}
	}
	return d, sum, share / sum
}

func softmaxRow(_ *Attrs, x, _, _, y, mag []float64) {
	d, sum, share := shifted(x)
	for i, v := range d {
		y[i] = math.Exp(v) / sum
		if y[i] != 0 {
			mag[i] = y[i] * (-v/2 + 2 + share + Depth(len(x)))
		}
	}
}

func logSoftmaxRow(_ *Attrs, x, _, _, y, mag []float64) {
	d, sum, share := shifted(x)
	log := math.Log(sum)
	for i, v := range d {
		y[i] = v - log
		mag[i] = -v + 2*log + share + Depth(len(x))
		if math.IsInf(y[i], 0) {
			mag[i] = 0
		}
	}
}

// beyondSquares reports whether all numbers are finite and their sum of squares s may overflow
// float32.
func beyondSquares(x []float64, s float64) bool {
	for _, v := range x {
		if v-v != 0 {
			return false
		}
	}
	return s >= 0x1p127
}

func layerNormRow(a *Attrs, x, gamma, beta, y, mag []float64) {
	n := float64(len(x))
	mean, abs := sumOf(x, itself)
	mean, abs = mean/n, abs/n
	squares, _ := sumOf(x, func(_ int, v float64) float64 { return v * v })
	v, _ := sumOf(x, func(_ int, v float64) float64 { return (v - mean) * (v - mean) })
	v /= n
	s := math.Sqrt(v + float64(NormOptsOf(a).Eps))
	d := Depth(len(x))
	beyond := beyondSquares(x, squares)
	off := d * abs / s // the error of the mean, in units of ε·s
	for i, e := range x {
		u := (e - mean) / s
		g, b := 1.0, 0.0
		if gamma != nil {
			g = gamma[i]
		}
		if beta != nil {
			b = beta[i]
		}
		y[i] = u*g + b
		// The variance has the relative error of a sum, and the square of the mean's error. The
		// square root halves both.
		mag[i] = math.Abs(g)*(off+math.Abs(u)*(d/2+4+epsilon*off*off/2)) + math.Abs(b)
		if beyond {
			mag[i] = math.Inf(1)
		}
	}
}

func rmsNormRow(a *Attrs, x, gamma, _, y, mag []float64) {
	squares, _ := sumOf(x, func(_ int, v float64) float64 { return v * v })
	s := math.Sqrt(squares/float64(len(x)) + float64(NormOptsOf(a).Eps))
	beyond := beyondSquares(x, squares)
	for i, e := range x {
		y[i] = e / s
		if gamma != nil {
			y[i] *= gamma[i]
		}
		mag[i] = math.Abs(y[i]) * (Depth(len(x))/2 + 4)
		if beyond {
			mag[i] = math.Inf(1)
		}
	}
}
