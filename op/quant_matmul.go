package op

import "math"

// MatMulQOpts are the parameters of [MatMulQ].
type MatMulQOpts struct {
	// Int8 allows a device to round a to 8 bits as [RoundInt8] does, and to multiply integers,
	// which is faster on a CPU. The error of each element of a is then at most 1/254 of the largest
	// magnitude in its group of 32. A device may ignore Int8.
	Int8      bool
	Act       *Operation // elementwise operation of one operand applied to the result; nil for none
	ActParams Attrs      // its parameters; the zero value means its defaults
}

// Attrs returns the parameters in the form that graphs carry.
func (o MatMulQOpts) Attrs() Attrs {
	return withAct(Attrs{I: [8]int{integer(o.Int8)}}, o.Act, o.ActParams)
}

// MatMulQOptsOf reads what [MatMulQOpts.Attrs] wrote.
func MatMulQOptsOf(a *Attrs) MatMulQOpts {
	act, params := a.Activation()
	return MatMulQOpts{a.I[0] != 0, act, params}
}

// MatMulQ multiplies rows by the transpose of a quantised matrix: a linear
// layer whose weights are blocks. [MatMulQOf] reads the sizes.
var MatMulQ = add(&Operation{name: "matmul_q", class: Shaped, doc: "the product of a matrix and the transpose of a quantised one",
	formula: "act(Σ_k a[..., i, k] * w[j, k] + bias[j])", inputs: []string{"a", "w", "bias"}, arity: [2]int{2, 3},
	shapes:  "a [... m k], w [n k] of a quantised type, with k a multiple of its block; bias [n], of the type of a; gives [... m n]",
	options: "MatMulQOpts", tol: blocked(), types: matMulQTypes, shape: matMulQShape, ref: matMulQReference,
	special: "As matmul. The magnitude of an element of w is that of its terms: |q·s| + |m| where blocks have minima. a is not rounded without the option Int8. With it each 32 neighbours x of a row of a become d·q, where d = max|x|/127 and q is x·(127/max|x|) rounded to the nearest integer, in float32; d is 0 if max|x| is below 2^-100. A device may leave a as it is: the bound is wider by Σ|a - d·q|·|w|. An infinity in a gives an infinity or NaN, and so does a block whose scale is not finite, which is not defined further.",
	flops: func(_ *Attrs, in, _ []Shape) float64 {
		p, _ := MatMulQOf(in)
		return 2 * float64(p.M) * float64(p.K) * float64(p.N)
	}})

// MatMulQOf returns the sizes of a [MatMulQ] over operands of the given shapes, or an ErrShape. All
// rows of a form one matrix.
func MatMulQOf(in []Shape) (Product, error) {
	a, w := in[0], in[1]
	if len(a) < 2 || len(w) != 2 {
		return Product{}, mismatch("%v times the transpose of %v: the first has two extents or more, the second two", a, w)
	}
	m, k := a.Rows()
	p := Product{Batch: 1, M: m, K: k, N: w[0], SharedB: true}
	if w[1] != k {
		return Product{}, mismatch("%v times the transpose of %v: rows of %d and %d", a, w, k, w[1])
	}
	if len(in) > 2 && in[2] != nil && !in[2].Equal(Shape{p.N}) {
		return Product{}, mismatch("bias %v for %d columns", in[2], p.N)
	}
	return p, nil
}

// matMulQTypes takes one floating type for a and bias, which the activation
// must keep, and a quantised one for w.
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
	rows := in[0].Data
	var scales []float64 // of the groups of rounded
	if MatMulQOptsOf(attrs).Int8 {
		rows, scales = roundedInt8(rows, p.K)
	}
	depth := Depth(p.K)
	for i := range y.Data {
		r, c := i/p.N, i%p.N
		a, w := rows[r*p.K:][:p.K], in[1].Data[c*p.K:][:p.K]
		terms := w
		if in[1].Mag != nil {
			terms = in[1].Mag[c*p.K:][:p.K]
		}
		s, mag, lost, undefined := 0.0, 0.0, 0.0, false
		for k, v := range a {
			s += v * w[k]
			mag += math.Abs(v * terms[k])
			lost += underflow(v * terms[k])
			if scales != nil {
				x := in[0].Data[r*p.K+k]
				lost += lostInt8(x, v, scales[r*len(scales)/max(1, p.M)+k/Int8Group], terms[k])
				undefined = undefined || math.IsInf(x, 0)
			}
			undefined = undefined || math.IsInf(v, 0) || math.IsInf(terms[k], 0)
		}
		if in[2] != nil {
			s += in[2].Data[c]
			mag += math.Abs(in[2].Data[c])
		}
		y.Data[i], y.Mag[i] = s, mag*depth+lost
		if undefined {
			y.Mag[i] = math.Inf(1)
		}
	}
}
