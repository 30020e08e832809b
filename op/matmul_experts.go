package op

import (
	"math"

	"github.com/rayo-go/rayo/internal/irhook"
)

// MatMulExpertsOpts are the parameters of [MatMulExperts].
type MatMulExpertsOpts struct {
	// Int8 lets a be rounded to 8 bits where w is quantised, as [MatMulQOpts] says. Weights of
	// a floating type ignore it.
	Int8 bool
}

// Attrs converts the options to parameters.
func (o MatMulExpertsOpts) Attrs() Attrs { return Attrs{I: [8]int{integer(o.Int8)}} }

// MatMulExpertsOptsOf returns the options from which [MatMulExpertsOpts.Attrs] made a.
func MatMulExpertsOptsOf(a *Attrs) MatMulExpertsOpts { return MatMulExpertsOpts{a.I[0] != 0} }

// defMatMulExperts multiplies each row by the transpose of the matrix that its id names: a linear
// layer of a mixture of experts. Matrices that no id names are not read. [ExpertsOf] reads the
// sizes.
var defMatMulExperts = Operation{define: func() *definition {
	return add(&definition{name: "matmul_experts", class: Shaped, selfTest: &irhook.SelfTest{Shapes: [][]int{{4, 9}, {4, 5, 9}, {4, 2}}, Index: 2}, doc: "the products of rows with the transposes of the matrices at the indices ids, as in a mixture of experts",
		formula: "Σ_k a[..., k] * w[ids[..., t], j, k]", inputs: []string{"a", "w", "ids"}, arity: [2]int{3, 3},
		shapes:  "a [s... k], w [e n k] of the type of a, or quantised with k a multiple of its block; ids of i32 [s...] or [s... t], with t experts for each row; gives [s... n] or [s... t n]",
		options: "MatMulExpertsOpts", tol: blocked(), types: expertsTypes, shape: expertsShape, ref: expertsReference,
		special: "As matmul, and as matmul_q where w is quantised. w may be f16 or bf16 where a is f32; the result is then f32. IDs from -e to -1 count from the end. Other ids outside [0, e) give rows of NaN, on every device.",
		flops: func(_ *Attrs, in, _ []Shape) float64 {
			x, _ := ExpertsOf(in)
			return 2 * float64(x.Rows) * float64(x.K) * float64(x.N)
		}})
}}

// Experts holds the sizes of [MatMulExperts]: row i of the result is a product of row i / Each of a.
type Experts struct {
	Experts, N, K int
	Rows          int // of the result
	Each          int // rows of the result for each row of a
}

// ExpertsOf returns the sizes of a [MatMulExperts] over operands of the given shapes, or an
// ErrShape.
func ExpertsOf(in []Shape) (Experts, error) {
	a, w, ids := in[0], in[1], in[2]
	if len(a) == 0 || len(w) != 3 {
		return Experts{}, mismatch("rows of %v times matrices of %v: expected [s... k] and [e n k]", a, w)
	}
	lead := a[:len(a)-1]
	more := len(ids) - len(lead)
	if more != 0 && more != 1 || !ids[:len(lead)].Equal(lead) {
		return Experts{}, mismatch("ids %v for rows of %v: expected the shape %v, or this shape with one more extent", ids, a, lead)
	}
	x := Experts{Experts: w[0], N: w[1], K: w[2], Each: 1}
	if a[len(lead)] != x.K {
		return Experts{}, mismatch("rows of %v times the transposes of %v: the last extents %d and %d must be equal", a, w, a[len(lead)], x.K)
	}
	if int64(x.Experts) > math.MaxInt32 {
		return Experts{}, mismatch("%d matrices: ids of type i32 address at most 2^31-1 matrices", x.Experts)
	}
	if more == 1 {
		x.Each = ids[len(lead)]
	}
	var err error
	x.Rows, err = ids.Size()
	return x, err
}

// Expert returns the matrix that an id names, or false if the id is outside [-Experts, Experts).
func (x Experts) Expert(id int32) (int, bool) { return Indexed{Extent: x.Experts}.Row(id) }

// expertsTypes accepts the types of [MatMul] and those of [MatMulQ], with ids of i32.
func expertsTypes(a *Attrs, in []DType) ([]DType, error) {
	if in[2] != I32 {
		return nil, unsupported("ids of type %v: expected i32", in[2])
	}
	if in[1].Quantized() {
		return floats(a, in[:1])
	}
	return productTypes(1)(a, in[:2])
}

func expertsShape(_ *Attrs, in []Shape) ([]Shape, error) {
	x, err := ExpertsOf(in)
	if err != nil {
		return nil, err
	}
	return []Shape{append(append(Shape{}, in[2]...), x.N)}, nil
}

func expertsReference(attrs *Attrs, in, out []*Array) {
	x, err := ExpertsOf([]Shape{in[0].Shape, in[1].Shape, in[2].Shape})
	if err != nil {
		return // the shape rule has refused it
	}
	y, w := out[0], in[1]
	y.Mag = make([]float64, len(y.Data))
	rows := rowsOf(in[0].Data, x.K, MatMulExpertsOptsOf(attrs).Int8 && w.typ.Quantized())
	for i := range x.Rows {
		e, ok := x.Expert(int32(in[2].Data[i]))
		for j := range x.N {
			if !ok {
				y.Data[i*x.N+j] = math.NaN()
				continue
			}
			y.Data[i*x.N+j], y.Mag[i*x.N+j] = rows.dot(i/x.Each, w, e*x.N+j, nil)
		}
	}
}
