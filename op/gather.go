package op

import (
	"math"

	"github.com/rayo-go/rayo/internal/irhook"
)

// defGather copies the elements of one axis of a table at given indices, as an embedding
// lookup does. [GatherOf] makes its parameters.
var defGather = Operation{define: func() *definition {
	return add(&definition{name: "gather", class: Shaped, selfTest: &irhook.SelfTest{Shapes: [][]int{{6, 5}, {4}}, Index: 1}, doc: "the elements of a table at the indices ids of one axis, as in an embedding lookup",
		formula: "table[..., ids[i], ...]", inputs: []string{"table", "ids"}, arity: [2]int{2, 2},
		shapes: "table [a... v b...] with v along the axis, ids of i32 of any shape s; gives [a... s... b...]",
		types:  gatherTypes, shape: gatherShape, ref: gatherReference, tol: Tolerance{Mag: 1},
		special: "Values are copied unchanged. Rows of a quantised table [v d] are converted to f32 without an error; their magnitude is defined at docs/OPS.md#matmul_q. IDs from -v to -1 count from the end. Other ids outside [0, v) give NaN, or 0 where the elements are integers or truth values, on every device."})
}}

// GatherOf returns the parameters of [Gather]: the axis, which counts from the end
// below 0.
func GatherOf(axis int) Attrs { return Attrs{I: [8]int{axis}} }

// Indexed holds the sizes of [Gather] and [Scatter]. The table is [Outer Extent Inner], and
// the gathered or scattered elements are [Outer IDs Inner].
type Indexed struct{ Outer, Extent, Inner, IDs int }

// IndexedOf returns the sizes of a use of [Gather] or [Scatter] over a table and ids of
// the given shapes, or an ErrShape.
func IndexedOf(a *Attrs, table, ids Shape) (Indexed, error) {
	axis, err := axisOf(a.I[0], len(table))
	if err != nil {
		return Indexed{}, err
	}
	if int64(table[axis]) > math.MaxInt32 {
		return Indexed{}, mismatch("an axis of %d elements: ids of type i32 address at most 2^31-1 elements", table[axis])
	}
	n, err := ids.Size()
	return Indexed{Outer: int(elements(table[:axis])), Extent: table[axis], Inner: int(elements(table[axis+1:])), IDs: n}, err
}

// Row returns the row that an id names, or false if the id is outside [-Extent, Extent).
func (x Indexed) Row(id int32) (int, bool) {
	row := int(id)
	if row < 0 {
		row += x.Extent
	}
	return row, row >= 0 && row < x.Extent
}

func gatherTypes(a *Attrs, in []DType) ([]DType, error) {
	if in[1] != I32 {
		return nil, unsupported("ids of type %v: expected i32", in[1])
	}
	if in[0].Quantized() {
		if a.I[0] != 0 && a.I[0] != -2 {
			return nil, unsupported("axis %d of a quantised table: only axis 0, of the rows, can be gathered", a.I[0])
		}
		return []DType{F32}, nil
	}
	return anything(nil, in[:1])
}

func gatherShape(a *Attrs, in []Shape) ([]Shape, error) {
	table, ids := in[0], in[1]
	if _, err := IndexedOf(a, table, ids); err != nil {
		return nil, err
	}
	axis, _ := axisOf(a.I[0], len(table))
	return []Shape{replaced(table, axis, ids)}, nil
}

// replaced returns a shape with the extents of ids in the place of an axis.
func replaced(s Shape, axis int, ids Shape) Shape {
	return append(append(append(Shape{}, s[:axis]...), ids...), s[axis+1:]...) // never nil
}

func gatherReference(a *Attrs, in, out []*Array) {
	table, y := in[0], out[0]
	s, err := IndexedOf(a, table.Shape, in[1].Shape)
	if err != nil {
		return // the shape rule has refused it
	}
	missing := 0.0
	if table.typ.Float() || table.typ.Quantized() {
		missing = math.NaN()
	}
	if table.Mag != nil {
		y.Mag = make([]float64, len(y.Data))
	}
	for o := range s.Outer {
		for i, id := range in[1].Data {
			row, ok := s.Row(int32(id))
			to, from := (o*s.IDs+i)*s.Inner, (o*s.Extent+row)*s.Inner
			for j := range s.Inner {
				if !ok {
					y.Data[to+j] = missing
					continue
				}
				y.Data[to+j] = table.Data[from+j]
				if y.Mag != nil {
					y.Mag[to+j] = table.Mag[from+j]
				}
			}
		}
	}
}
