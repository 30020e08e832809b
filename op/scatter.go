package op

import (
	"github.com/rayo-go/rayo/internal/irhook"
	"math"
	"slices"
)

// defScatter writes elements of one axis at indices that are an operand.
// [ScatterOf] makes its parameters.
var defScatter = Operation{define: func() *definition {
	return add(&definition{name: "scatter", class: Shaped, selfTest: &irhook.SelfTest{Attrs: ScatterOf(0, ScatterAdd), Shapes: [][]int{{6, 5}, {9}, {9, 5}}, Index: 1}, doc: "x with the elements of v assigned, added, multiplied or combined by minimum or maximum at the indices ids of one axis",
		formula: "x with x[..., ids[i], ...] = x[..., ids[i], ...] ∘ v[..., i, ...]", inputs: []string{"x", "ids", "v"}, arity: [2]int{3, 3},
		shapes: "x [a... n b...] with n along the axis, ids of i32 of shape s, v [a... s... b...]; gives the shape of x",
		types:  scatterTypes, shape: scatterShape, ref: scatterReference, tol: Tolerance{Mag: 1}, flops: noFlops,
		special: "IDs from -n to -1 count from the end; elements of v for other ids outside [0, n) are dropped. Where several ids are equal, assignment keeps the last of their elements in the order of v. Sums and products combine the elements in the order of v, in groups that depend only on the ids, so that every run gives the same bits. " +
			"Sums and products of f16 and bf16 are computed in f32 and rounded when they are stored; sums and products of integers wrap; minimum and maximum give NaN if any element is NaN. The magnitude is the sum of the magnitudes of the terms, or the magnitude of the product, times the number of terms; where an intermediate sum or product leaves the range of normal numbers of f32, the result is not defined."})
}}

// ScatterReduce says how [Scatter] combines an element of v with the element of x at its
// index.
type ScatterReduce uint8

const (
	ScatterSet ScatterReduce = iota // the element replaces the old one
	ScatterAdd                      // their sum
	ScatterMul                      // their product
	ScatterMin                      // the lesser of the two
	ScatterMax                      // the greater of the two
)

// String returns set, add, mul, min or max.
func (r ScatterReduce) String() string {
	names := [...]string{"set", "add", "mul", "min", "max"}
	if int(r) < len(names) {
		return names[r]
	}
	return "?"
}

// ScatterOpts are the parameters of the methods of package batch that scatter.
type ScatterOpts struct {
	Reduce ScatterReduce // how an element is combined with the old one; by default it replaces it
	Along  Along         // the one axis; the first if not given
}

// Attrs converts the options to parameters. Along is not part of them.
func (o ScatterOpts) Attrs() Attrs { return ScatterOf(0, o.Reduce) }

// ScatterOf returns the parameters of [Scatter]: the axis, which counts from the end if negative,
// and how an element is combined with the old one.
func ScatterOf(axis int, r ScatterReduce) Attrs { return Attrs{I: [8]int{axis, int(r)}} }

// ScatterReduceOf returns the argument r of [ScatterOf].
func ScatterReduceOf(a *Attrs) ScatterReduce { return ScatterReduce(a.I[1]) }

func scatterTypes(a *Attrs, in []DType) ([]DType, error) {
	if in[1] != I32 {
		return nil, unsupported("ids have type %v: expected i32", in[1])
	}
	pair := []DType{in[0], in[2]}
	switch r := a.I[1]; {
	case r < 0 || r > int(ScatterMax):
		return nil, unsupported("the ScatterReduce is %d: expected 0 to %d", r, uint8(ScatterMax))
	case ScatterReduceOf(a) == ScatterSet:
		return anything(nil, pair)
	}
	return numbers(nil, pair)
}

func scatterShape(a *Attrs, in []Shape) ([]Shape, error) {
	x, ids, v := in[0], in[1], in[2]
	if _, err := IndexedOf(a, x, ids); err != nil {
		return nil, err
	}
	axis, _ := axisOf(a.I[0], len(x))
	if want := replaced(x, axis, ids); !v.Equal(want) {
		return nil, mismatch("v has shape %v for ids of shape %v along axis %d of %v: expected %v", v, ids, axis, x, want)
	}
	return []Shape{slices.Clone(x)}, nil
}

func scatterReference(a *Attrs, in, out []*Array) {
	x, v, y := in[0], in[2], out[0]
	s, err := IndexedOf(a, x.Shape, in[1].Shape)
	if err != nil {
		return // the shape rule has refused it
	}
	copy(y.Data, x.Data)
	f := folder{reduce: ScatterReduceOf(a), typ: x.typ}
	if f.rounds() {
		f.mag, f.count = make([]float64, len(y.Data)), make([]float64, len(y.Data))
		for i, w := range x.Data {
			f.mag[i] = finite(w)
		}
	}
	for o := range s.Outer {
		for i, id := range in[1].Data {
			row, ok := s.Row(int32(id))
			for j := range s.Inner {
				if ok {
					at := (o*s.Extent+row)*s.Inner + j
					y.Data[at] = f.fold(at, y.Data[at], v.Data[(o*s.IDs+i)*s.Inner+j])
				}
			}
		}
	}
	if f.rounds() {
		for i := range f.mag {
			if f.mag[i] *= f.count[i]; f.mag[i] != f.mag[i] {
				f.mag[i] = 0
			}
		}
		y.Mag = f.mag
	}
}

// folder combines elements, one after the other, with the old element, and records the magnitudes and
// the number of the roundings.
type folder struct {
	reduce     ScatterReduce
	typ        DType
	mag, count []float64
}

func (f *folder) rounds() bool {
	return f.typ.Float() && (f.reduce == ScatterAdd || f.reduce == ScatterMul)
}

// fold combines x, the element at index at, with v.
func (f *folder) fold(at int, x, v float64) float64 {
	switch f.reduce {
	case ScatterAdd:
		if f.typ.Float() {
			f.count[at]++
			if f.mag[at] += finite(v); f.mag[at] >= overflow {
				f.mag[at] = math.Inf(1) // an intermediate sum may overflow
			}
			return x + v
		}
		return f.wrap(int64(x) + int64(v))
	case ScatterMul:
		if f.typ.Float() {
			y := x * v
			f.count[at]++
			switch m := finite(y); {
			case m >= overflow || m != 0 && m < minNormal || math.IsInf(f.mag[at], 1):
				f.mag[at] = math.Inf(1)
			default:
				f.mag[at] = m
			}
			return y
		}
		return f.wrap(int64(uint64(int64(x)) * uint64(int64(v))))
	case ScatterMin:
		return min(x, v)
	case ScatterMax:
		return max(x, v)
	}
	return v
}

// finite returns the magnitude of v, or 0 if v is NaN or infinite.
func finite(v float64) float64 {
	// Not v-v != 0: if v is a product and finite is inlined, a compiler for arm64 fuses the
	// product with the subtraction.
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return math.Abs(v)
}

// wrap reduces an integer to the low 32 bits, as an element of the type.
func (f *folder) wrap(v int64) float64 {
	if f.typ == U32 {
		return float64(uint32(v))
	}
	return float64(int32(v))
}
