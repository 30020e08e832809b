package op

import (
	"math"

	"github.com/rayo-go/rayo/internal/irhook"
)

// MatMulQOpts are the parameters of [MatMulQ].
type MatMulQOpts struct {
	// Int8 allows a device to round a to 8 bits as [RoundInt8] does, and to multiply integers,
	// which is faster on a CPU. The error of each element of a is then at most 1/254 of the largest
	// magnitude in its group of 32. A device may ignore Int8.
	Int8      bool
	Act       *Operation // elementwise operation of one operand applied to the result; nil for none
	ActParams Attrs      // its parameters; the zero value means its defaults
}

// Attrs converts the options to parameters.
func (o MatMulQOpts) Attrs() Attrs {
	return withAct(Attrs{I: [8]int{integer(o.Int8)}}, o.Act, o.ActParams)
}

// MatMulQOptsOf returns the options from which [MatMulQOpts.Attrs] made a.
func MatMulQOptsOf(a *Attrs) MatMulQOpts {
	act, params := a.Activation()
	return MatMulQOpts{a.I[0] != 0, act, params}
}

// defMatMulQ multiplies rows by the transpose of a quantised matrix: a linear
// layer whose weights are blocks. [MatMulQOf] reads the sizes.
var defMatMulQ = Operation{define: func() *definition {
	return add(&definition{name: "matmul_q", class: Shaped, selfTest: &irhook.SelfTest{Shapes: [][]int{{3, 256}, {9, 256}}, Blocks: 1}, doc: "the product of a matrix and the transpose of a quantised matrix",
		formula: "act(Σ_k a[..., i, k] * w[j, k] + bias[j])", inputs: []string{"a", "w", "bias"}, arity: [2]int{2, 3},
		shapes:  "a [... m k], w [n k] of a quantised type, with k a multiple of its block; bias [n], of the type of a; gives [... m n]",
		options: "MatMulQOpts", tol: blocked(), types: matMulQTypes, shape: matMulQShape, ref: matMulQReference,
		special: "As matmul. The magnitude of an element of w is the sum of the magnitudes of its terms, |q·s| + |m| where blocks have minima. Without option Int8, a is not rounded. With it, a device may round each group of 32 neighbouring elements x of a row of a to d·q, where d = max|x|/127 and q is x·(127/max|x|) rounded to the nearest integer, in float32; d is 0 if max|x| is below 2^-100. The error bound is then wider by Σ|a - d·q|·|w|. An infinity in a, or a block whose scale is not finite, gives either an infinity or NaN.",
		flops: func(_ *Attrs, in, _ []Shape) float64 {
			p, _ := MatMulQOf(in)
			return 2 * float64(p.M) * float64(p.K) * float64(p.N)
		}})
}}

// MatMulQOf returns the sizes of a [MatMulQ] over operands of the given shapes, or an ErrShape. All
// rows of a form one matrix.
func MatMulQOf(in []Shape) (Product, error) {
	a, w := in[0], in[1]
	if len(a) < 2 || len(w) != 2 {
		return Product{}, mismatch("%v times the transpose of %v: expected two axes or more for the first, and two for the second", a, w)
	}
	m, k := a.Rows()
	p := Product{Batch: 1, M: m, K: k, N: w[0], SharedB: true}
	if w[1] != k {
		return Product{}, mismatch("%v times the transpose of %v: the last extents %d and %d must be equal", a, w, k, w[1])
	}
	if len(in) > 2 && in[2] != nil && !in[2].Equal(Shape{p.N}) {
		return Product{}, mismatch("bias %v for %d columns: expected %v", in[2], p.N, Shape{p.N})
	}
	return p, nil
}

// matMulQTypes accepts one floating type for a and bias, which the activation must not
// change, and a quantised type for w.
func matMulQTypes(a *Attrs, in []DType) ([]DType, error) {
	if !in[1].Quantized() {
		return nil, unsupported("w has type %v: expected a quantised type", in[1])
	}
	others := [...]DType{in[0], InvalidType}
	copy(others[1:], in[2:])
	return activated(a, others[:])
}

func matMulQShape(_ *Attrs, in []Shape) ([]Shape, error) {
	p, err := MatMulQOf(in)
	if err != nil {
		return nil, err
	}
	lead := in[0][:len(in[0])-1]
	return []Shape{append(append(Shape{}, lead...), p.N)}, nil
}

func matMulQReference(attrs *Attrs, in, out []*Array) {
	p, _ := MatMulQOf([]Shape{in[0].Shape, in[1].Shape})
	y := out[0]
	y.Mag = make([]float64, len(y.Data))
	rows := rowsOf(in[0].Data, p.K, MatMulQOptsOf(attrs).Int8)
	for i := range y.Data {
		y.Data[i], y.Mag[i] = rows.dot(i/p.N, in[1], i%p.N, in[2])
	}
}

// multipliedRows are rows of k numbers that are multiplied by rows of weights. They may be rounded to
// 8 bits before.
type multipliedRows struct {
	k       int
	x       []float64 // the numbers before rounding
	rounded []float64 // the factors: x itself if nothing is rounded
	scales  []float64 // of the groups of rounded; nil if nothing is rounded
}

func rowsOf(x []float64, k int, int8 bool) multipliedRows {
	r := multipliedRows{k: k, x: x, rounded: x}
	if int8 {
		r.rounded, r.scales = roundedInt8(x, k)
	}
	return r
}

// dot returns the product of row i with row j of weights, plus element j of bias unless bias is nil,
// and the magnitude of the result.
func (m multipliedRows) dot(i int, weights *Array, j int, bias *Array) (s, mag float64) {
	a, w := m.rounded[i*m.k:][:m.k], weights.Data[j*m.k:][:m.k]
	terms := w
	if weights.Mag != nil {
		terms = weights.Mag[j*m.k:][:m.k]
	}
	groups := (m.k + Int8Group - 1) / Int8Group
	lost, undefined := 0.0, false
	for k, v := range a {
		s += v * w[k]
		mag += math.Abs(v * terms[k])
		lost += underflow(v * terms[k])
		if m.scales != nil {
			x := m.x[i*m.k+k]
			lost += lostInt8(x, v, m.scales[i*groups+k/Int8Group], terms[k])
			undefined = undefined || math.IsInf(x, 0)
		}
		undefined = undefined || weights.typ.Quantized() && (math.IsInf(v, 0) || math.IsInf(terms[k], 0))
	}
	if bias != nil {
		s += bias.Data[j]
		mag += math.Abs(bias.Data[j])
	}
	if undefined {
		return s, math.Inf(1)
	}
	return s, mag*Depth(m.k) + lost
}
