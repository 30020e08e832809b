package op

import (
	"slices"

	"github.com/rayo-go/rayo/internal/irhook"
)

// Operations that start at an index which they read from an operand of one i32 when they
// run, so that one plan serves all indices.
var (
	// defSliceAt copies n elements of one axis, starting at an index that is an operand.
	// [SliceAtOf] makes its parameters.
	defSliceAt = Operation{define: func() *definition {
		return add(&definition{name: "slice_at", class: Shaped, selfTest: &irhook.SelfTest{Attrs: SliceAtOf(0, 2), Shapes: [][]int{{6, 5}, {1}}, Index: 1}, doc: "n elements of one axis, starting at an index that is an operand",
			formula: "x[..., at:at+n, ...]", inputs: []string{"x", "at"}, arity: [2]int{2, 2},
			shapes: "any, at of one element; gives the shape of x with n along the axis, which must have at least n elements",
			types:  placed, shape: sliceAtShape, ref: sliceAtReference, flops: noFlops,
			special: "Values are copied unchanged. The index is limited to [0, extent - n]."})
	}}

	// defUpdate replaces elements of one axis, starting at an index that is an operand.
	// [UpdateOf] makes its parameters.
	defUpdate = Operation{define: func() *definition {
		return add(&definition{name: "update", class: Shaped, selfTest: &irhook.SelfTest{Attrs: UpdateOf(0), Shapes: [][]int{{6, 5}, {1}, {2, 5}}, Index: 1}, doc: "x with elements of one axis replaced by v, starting at an index that is an operand",
			formula: "x with x[..., at:at+m, ...] = v", inputs: []string{"x", "at", "v"}, arity: [2]int{3, 3},
			shapes: "x, at of one element, v of the shape of x except along the axis; gives the shape of x",
			types:  placed, shape: updateShape, ref: updateReference, flops: noFlops,
			special: "Values are copied unchanged. Elements of v that would lie before the first or after the last element of x are dropped."})
	}}
)

// placed is the type rule of operations that read a start index. The index is the second operand,
// of type i32; all other operands have one type.
func placed(_ *Attrs, in []DType) ([]DType, error) {
	if in[1] != I32 {
		return nil, unsupported("operand at has type %v: expected i32", in[1])
	}
	return anything(nil, slices.Delete(slices.Clone(in), 1, 2))
}

// SliceAtOf returns the parameters of [SliceAt]: n elements of an axis, which
// counts from the end below 0.
func SliceAtOf(axis, n int) Attrs { return Attrs{I: [8]int{axis, n}} }

// UpdateOf returns the parameters of [Update]: the axis, which counts from the end
// below 0.
func UpdateOf(axis int) Attrs { return Attrs{I: [8]int{axis}} }

// Placed holds the sizes of [SliceAt] and [Update]. The array is [Outer Extent Inner], and the
// slice or the update is [Outer Part Inner].
type Placed struct{ Outer, Extent, Inner, Part int }

// PlacedOf returns the sizes of a use of [SliceAt] or [Update] over operands of
// the given shapes, v among them for an update, or an ErrShape.
func PlacedOf(a *Attrs, in []Shape) (Placed, error) {
	x := in[0]
	axis, err := axisOf(a.I[0], len(x))
	if err != nil {
		return Placed{}, err
	}
	if n, err := in[1].Size(); err != nil || n != 1 {
		return Placed{}, mismatch("the index at has shape %v: expected one element", in[1])
	}
	p := Placed{Outer: int(elements(x[:axis])), Extent: x[axis], Inner: int(elements(x[axis+1:])), Part: a.I[1]}
	if len(in) < 3 || in[2] == nil {
		if p.Part < 0 || p.Part > p.Extent {
			return p, mismatch("a slice of %d elements of axis %d of %v: expected 0 to %d elements", p.Part, axis, x, p.Extent)
		}
		return p, nil
	}
	v := in[2]
	if len(v) != len(x) {
		return p, mismatch("update of %v with %v: both must have the same number of axes", x, v)
	}
	for i := range x {
		if i != axis && v[i] != x[i] {
			return p, mismatch("update of %v with %v along axis %d: all other extents must be equal", x, v, axis)
		}
	}
	p.Part = v[axis]
	return p, nil
}

// Start returns the index of the first element of a slice at index at: at, limited to
// [0, Extent - Part].
func (p Placed) Start(at int) int { return max(0, min(at, p.Extent-p.Part)) }

// Rows returns the range [first, last) of the elements of v along the axis that an update
// at index at writes into x. The others would lie outside x.
func (p Placed) Rows(at int) (first, last int) {
	return min(max(-at, 0), p.Part), max(min(p.Extent-at, p.Part), 0)
}

func sliceAtShape(a *Attrs, in []Shape) ([]Shape, error) {
	p, err := PlacedOf(a, in)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(in[0])
	axis, _ := axisOf(a.I[0], len(out))
	out[axis] = p.Part
	return []Shape{out}, nil
}

func updateShape(a *Attrs, in []Shape) ([]Shape, error) {
	_, err := PlacedOf(a, in)
	return in[:1:1], err
}

func sliceAtReference(a *Attrs, in, out []*Array) {
	p, err := PlacedOf(a, []Shape{in[0].Shape, in[1].Shape})
	if err != nil {
		return // the shape rule has refused it
	}
	start, run := p.Start(int(in[1].Data[0])), p.Part*p.Inner
	for o := range p.Outer {
		copy(out[0].Data[o*run:(o+1)*run], in[0].Data[(o*p.Extent+start)*p.Inner:])
	}
}

func updateReference(a *Attrs, in, out []*Array) {
	p, err := PlacedOf(a, []Shape{in[0].Shape, in[1].Shape, in[2].Shape})
	if err != nil {
		return // the shape rule has refused it
	}
	copy(out[0].Data, in[0].Data)
	at := int(in[1].Data[0])
	first, last := p.Rows(at)
	for o := range p.Outer {
		for r := first; r < last; r++ {
			copy(out[0].Data[(o*p.Extent+at+r)*p.Inner:][:p.Inner], in[2].Data[(o*p.Part+r)*p.Inner:])
		}
	}
}
