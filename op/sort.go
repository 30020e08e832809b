package op

import (
	"github.com/rayo-go/rayo/internal/irhook"
	"math"
	"slices"
)

// defSort puts the elements of each row in order. [SortOpts] are its parameters.
var defSort = Operation{define: func() *definition {
	return add(&definition{name: "sort", class: Shaped, selfTest: &irhook.SelfTest{Shapes: [][]int{{3, 9}}}, doc: "the elements of each row in ascending or descending order, and their indices",
		formula: "x[i_1] <= x[i_2] <= ... <= x[i_n]", inputs: []string{"x"}, arity: [2]int{1, 1}, outs: 2, options: "SortOpts",
		shapes: "x [... n]; gives values and indices [... n]",
		types:  sortTypes, shape: sortShape, ref: sortReference,
		special: "The order is that of NumPy's stable sort: NaN counts as greater than +Inf, so it comes last in ascending and first in descending order; -0 equals 0; equal elements are in the order of their indices in both directions. Values are copied unchanged."})
}}

// SortOpts are the parameters of [Sort].
type SortOpts struct {
	Descending bool  // sort from the greatest element to the least, not from the least
	Along      Along // axes that are sorted as one row, of methods of package batch; the last axis if not given
}

// Attrs converts the options to parameters. Along is not part of them.
func (o SortOpts) Attrs() Attrs {
	var a Attrs
	if o.Descending {
		a.I[0] = 1
	}
	return a
}

// SortOptsOf returns the options from which [SortOpts.Attrs] made a.
func SortOptsOf(a *Attrs) SortOpts { return SortOpts{Descending: a.I[0] != 0} }

func sortTypes(_ *Attrs, in []DType) ([]DType, error) {
	out, err := same(in, func(d DType) bool { return d.Float() || d == I32 || d == U32 })
	return append(out, I32), err
}

func sortShape(_ *Attrs, in []Shape) ([]Shape, error) {
	x := in[0]
	if len(x) == 0 {
		return nil, mismatch("the operand is a scalar: it needs one extent or more")
	}
	if n := x[len(x)-1]; n > math.MaxInt32 {
		return nil, mismatch("rows of %d elements: at most 2^31-1 are supported", n)
	}
	return []Shape{slices.Clone(x), slices.Clone(x)}, nil
}

func sortReference(a *Attrs, in, out []*Array) {
	_, n := in[0].Shape.Rows()
	if len(in[0].Data) == 0 {
		return
	}
	descending := SortOptsOf(a).Descending
	for from := 0; from < len(in[0].Data); from += n {
		x := in[0].Data[from:][:n]
		for i, p := range sorted(x, descending) {
			out[0].Data[from+i], out[1].Data[from+i] = x[p], float64(p)
		}
	}
}

// sorted returns the indices of x in the order of its elements. NaN counts as the greatest, and
// equal elements keep their order.
func sorted(x []float64, descending bool) []int {
	place := make([]int, len(x))
	for i := range place {
		place[i] = i
	}
	slices.SortStableFunc(place, func(i, j int) int {
		if descending {
			i, j = j, i
		}
		switch a, b := x[i], x[j]; {
		case a == b || a != a && b != b:
			return 0
		case b != b || a < b:
			return -1
		}
		return 1
	})
	return place
}
