package op

import (
	"math"

	"github.com/rayo-go/rayo/internal/irhook"
)

// Selection of elements.
var (
	// defTopK finds the greatest elements of each row, and their indices.
	defTopK = Operation{define: func() *definition {
		return add(&definition{name: "topk", class: Shaped, selfTest: &irhook.SelfTest{Attrs: TopKOpts{K: 2}.Attrs(), Shapes: [][]int{{3, 9}}}, doc: "the k greatest elements of each row in descending order, and their indices",
			formula: "x[i_1] >= x[i_2] >= ... >= x[i_k] >= all others", inputs: []string{"x"}, arity: [2]int{1, 1}, outs: 2, options: "TopKOpts",
			shapes: "x [... n] with n >= k; gives values and indices [... k]",
			types:  topKTypes, shape: topKShape, ref: topKReference,
			special: "The order is that of NumPy's sort: NaN counts as greater than +Inf, so it comes first; -0 equals 0; equal elements are in the order of their indices."})
	}}
)

// TopKOpts are the parameters of [TopK].
type TopKOpts struct {
	K int // the number of elements; 0 gives none
}

// Attrs converts the options to parameters.
func (o TopKOpts) Attrs() Attrs { return Attrs{I: [8]int{o.K}} }

// TopKOptsOf returns the options from which [TopKOpts.Attrs] made a.
func TopKOptsOf(a *Attrs) TopKOpts { return TopKOpts{a.I[0]} }

func topKTypes(a *Attrs, in []DType) ([]DType, error) {
	out, err := floats(a, in)
	return append(out, I32), err
}

func topKShape(a *Attrs, in []Shape) ([]Shape, error) {
	x, k := in[0], TopKOptsOf(a).K
	if len(x) == 0 {
		return nil, mismatch("the operand is a scalar: it needs one extent or more")
	}
	n := x[len(x)-1]
	if k < 0 || k > n {
		return nil, mismatch("K is %d for rows of %d elements: expected 0 to %[2]d", k, n)
	}
	if n > math.MaxInt32 {
		return nil, mismatch("rows of %d elements: at most 2^31-1 are supported", n)
	}
	out := append(append(Shape{}, x[:len(x)-1]...), k)
	return []Shape{out, out}, nil
}

func topKReference(a *Attrs, in, out []*Array) {
	k := TopKOptsOf(a).K
	_, n := in[0].Shape.Rows()
	if k == 0 || len(out[0].Data) == 0 {
		return
	}
	for r := range len(out[0].Data) / k {
		x := in[0].Data[r*n:][:n]
		for i, p := range sorted(x, true)[:k] {
			out[0].Data[r*k+i], out[1].Data[r*k+i] = x[p], float64(p)
		}
	}
}
