package op

import (
	"math"

	"github.com/rayo-go/rayo/internal/irhook"
)

// MatMulOpts are the parameters of [MatMul].
type MatMulOpts struct {
	TransA    bool       // a is stored [k m], not [m k]
	TransB    bool       // b is stored [n k], not [k n]
	TF32      bool       // float32 elements of a and b may be rounded to 11 significant bits, for speed
	Act       *Operation // elementwise operation of one operand applied to the result; nil for none
	ActParams Attrs      // its parameters; the zero value means its defaults
}

// Attrs converts the options to parameters.
func (o MatMulOpts) Attrs() Attrs {
	return withAct(Attrs{I: [8]int{integer(o.TransA), integer(o.TransB), integer(o.TF32)}}, o.Act, o.ActParams)
}

// MatMulOptsOf returns the options from which [MatMulOpts.Attrs] made a.
func MatMulOptsOf(a *Attrs) MatMulOpts {
	act, params := a.Activation()
	return MatMulOpts{a.I[0] != 0, a.I[1] != 0, a.I[2] != 0, act, params}
}

// MatVecOpts are the parameters of [MatVec].
type MatVecOpts struct {
	Trans bool // a is stored [k m], not [m k]
}

// Attrs converts the options to parameters.
func (o MatVecOpts) Attrs() Attrs { return Attrs{I: [8]int{integer(o.Trans)}} }

// MatVecOptsOf returns the options from which [MatVecOpts.Attrs] made a.
func MatVecOptsOf(a *Attrs) MatVecOpts { return MatVecOpts{a.I[0] != 0} }

func integer(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Products of matrices.
var (
	// defMatMul multiplies matrices, one pair or many. [MatMulOf] reads the sizes.
	//
	// TF32 is a type of NVIDIA's tensor cores with the range of float32 and 11 of its 24
	// significant bits. With [MatMulOpts].TF32 a device may round an element of a or b to
	// either of the two neighbouring TF32 numbers. An element beyond 0x1.ff8p127 may become
	// infinite, and so may a signalling NaN whose bits TF32 cuts off. Sums stay float32.
	// Devices that gain nothing by TF32 ignore it.
	defMatMul = Operation{define: func() *definition {
		return add(&definition{name: "matmul", class: Shaped, selfTest: &irhook.SelfTest{Product: true}, doc: "the product of two matrices, of corresponding matrices of two batches, or of a batch of matrices and one matrix",
			formula: "act(Σ_k a[..., i, k] * b[..., k, j] + bias[j])", inputs: []string{"a", "b", "bias"}, arity: [2]int{2, 3},
			shapes:  "a [... m k] and b [... k n] with the same leading extents, or b [k n] for all; bias [n]; gives [... m n]",
			options: "MatMulOpts", tol: blocked(), types: productTypes(1), shape: matMulShape, ref: matMulReference,
			special: "IEEE 754; 0 where k = 0, before bias and activation. b may be f16 or bf16 where a is f32; the result is then f32. float32 operands are rounded to a narrower type only with option TF32. A partial sum that overflows is infinite even if the complete sum would not be.",
			flops: func(a *Attrs, in, _ []Shape) float64 {
				p, _ := MatMulOf(a, in)
				return 2 * float64(p.Batch) * float64(p.M) * float64(p.K) * float64(p.N)
			}})
	}}

	// defMatVec multiplies a matrix and a vector.
	defMatVec = Operation{define: func() *definition {
		return add(&definition{name: "matvec", class: Shaped, selfTest: &irhook.SelfTest{Shapes: [][]int{{5, 9}, {9}}}, doc: "the product of a matrix and a vector",
			formula: "Σ_k a[i, k] * x[k]", inputs: []string{"a", "x"}, arity: [2]int{2, 2},
			shapes:  "a [m k], x [k]; gives [m]",
			options: "MatVecOpts", tol: blocked(), types: productTypes(0), shape: matVecShape, ref: matVecReference, special: "As matmul; a may be f16 or bf16 where x is f32.",
			flops: func(_ *Attrs, in, _ []Shape) float64 { return 2 * elements(in[0]) }})
	}}
)

// Product holds the sizes of a product of matrices.
type Product struct {
	Batch, M, K, N int
	SharedB        bool // one b for the whole batch
}

// transposed is the text after the shape of a transposed operand in error messages.
var transposed = map[bool]string{true: " transposed"}

// MatMulOf returns the sizes of a [MatMul] over operands of the given shapes,
// or an ErrShape.
func MatMulOf(a *Attrs, in []Shape) (Product, error) {
	o := MatMulOptsOf(a)
	x, y := in[0], in[1]
	if len(x) < 2 || len(y) < 2 {
		return Product{}, mismatch("%v times %v: each operand needs two axes or more: add one with Unsqueeze", x, y)
	}
	lead, xm := x[:len(x)-2], x[len(x)-2:]
	leadY, ym := y[:len(y)-2], y[len(y)-2:]
	p := Product{Batch: 1, M: xm[0], K: xm[1], N: ym[1], SharedB: len(leadY) == 0}
	k := ym[0]
	if o.TransA {
		p.M, p.K = p.K, p.M
	}
	if o.TransB {
		k, p.N = p.N, k
	}
	switch {
	case k != p.K:
		return Product{}, mismatch("%v%s times %v%s: inner extents %d and %d differ", x, transposed[o.TransA], y, transposed[o.TransB], p.K, k)
	case len(leadY) > 0 && !lead.Equal(leadY):
		return Product{}, mismatch("%v times %v: leading extents %v and %v do not broadcast", x, y, lead, leadY)
	case len(in) > 2 && in[2] != nil && !in[2].Equal(Shape{p.N}):
		return Product{}, mismatch("bias %v for %d columns: expected %v", in[2], p.N, Shape{p.N})
	}
	var err error
	p.Batch, err = lead.Size()
	return p, err
}

func matMulShape(a *Attrs, in []Shape) ([]Shape, error) {
	p, err := MatMulOf(a, in)
	if err != nil {
		return nil, err
	}
	lead := in[0][:len(in[0])-2]
	return []Shape{append(append(Shape{}, lead...), p.M, p.N)}, nil
}

// activated is the rule that all operands have one floating type, which the activation
// must not change.
func activated(a *Attrs, in []DType) ([]DType, error) {
	out, err := floats(a, in)
	if err == nil {
		err = a.checkAct(out[0])
	}
	return out, err
}

// productTypes returns the type rule of a product. All operands have one floating type, but
// the operand with number weights may be f16 or bf16 if the others are f32. The activation
// must keep the type.
func productTypes(weights int) typeRule {
	return func(a *Attrs, in []DType) ([]DType, error) {
		if t := in[weights]; in[1-weights] == F32 && (t == F16 || t == BF16) {
			in = append([]DType(nil), in...)
			in[weights] = F32
		}
		return activated(a, in)
	}
}

func matMulReference(a *Attrs, in, out []*Array) {
	shapes := []Shape{in[0].Shape, in[1].Shape}
	p, _ := MatMulOf(a, shapes)
	o := MatMulOptsOf(a)
	y := out[0]
	y.Mag = make([]float64, len(y.Data))
	// Strides along each axis.
	ai, ak, bk, bj := p.K, 1, p.N, 1
	if o.TransA {
		ai, ak = 1, p.M
	}
	if o.TransB {
		bk, bj = 1, p.K
	}
	depth := Depth(p.K)
	for i := range y.Data {
		q, r, c := i/(p.M*p.N), i/p.N%p.M, i%p.N
		x, w := in[0].Data[q*p.M*p.K:], in[1].Data
		if !p.SharedB {
			w = w[q*p.K*p.N:]
		}
		s, mag, lost := 0.0, 0.0, 0.0
		for k := range p.K {
			x, w := x[r*ai+k*ak], w[k*bk+c*bj]
			t := x * w
			s += t
			mag += math.Abs(t)
			lost += underflow(t)
			if o.TF32 {
				lost += tf32Slack(x, w)
			}
		}
		if in[2] != nil {
			s += in[2].Data[c]
			mag += math.Abs(in[2].Data[c])
		}
		y.Data[i], y.Mag[i] = s, mag*depth+lost
	}
}

// tf32Slack returns, in units of ε, the largest change of x·y if both factors are rounded
// to neighbouring numbers of TF32. Each factor changes by at most 2^-10 of itself, or by
// 2^-136 if it is subnormal. The result is infinite if a factor may become infinite.
func tf32Slack(x, y float64) float64 {
	const step, least, most = 0x1p-10 / epsilon, 0x1p-136 / epsilon, 0x1.ff8p127
	x, y = math.Abs(x), math.Abs(y)
	if math.IsInf(x, 0) || math.IsInf(y, 0) {
		return 0 // infinities do not change
	}
	if x > most || y > most {
		return math.Inf(1)
	}
	dx, dy := max(x*step, least), max(y*step, least)
	return dx*y + x*dy + dx*dy*epsilon
}

func matVecShape(a *Attrs, in []Shape) ([]Shape, error) {
	m, x := in[0], in[1]
	if len(m) != 2 || len(x) != 1 {
		return nil, mismatch("%v times %v: expected a matrix and a vector", m, x)
	}
	rows, cols := m[0], m[1]
	if MatVecOptsOf(a).Trans {
		rows, cols = cols, rows
	}
	if cols != x[0] {
		return nil, mismatch("%v times %v: the matrix has %d columns, and the vector %d elements", m, x, cols, x[0])
	}
	return []Shape{{rows}}, nil
}

func matVecReference(a *Attrs, in, out []*Array) {
	x := *in[1]
	x.Shape = Shape{len(x.Data), 1}
	y := *out[0]
	y.Shape = Shape{len(y.Data), 1}
	mm := MatMulOpts{TransA: MatVecOptsOf(a).Trans}.Attrs()
	matMulReference(&mm, []*Array{in[0], &x, nil}, []*Array{&y})
	out[0].Mag = y.Mag
}
