package op

// Reshape and Transpose, which only move elements.
var (
	// Reshape gives the elements another shape. [ReshapeTo] makes its parameters.
	Reshape = add(&Operation{name: "reshape", class: Shaped, doc: "the same elements in another shape; nothing is moved",
		formula: "x", inputs: []string{"x"}, arity: [2]int{1, 1},
		shapes: "any; gives the one asked for, in which one extent may be -1 and follows from the others",
		types:  anything, shape: reshapeShape, special: "Values pass unchanged.",
		ref:   func(_ *Attrs, in, out []*Array) { copy(out[0].Data, in[0].Data) },
		flops: func(*Attrs, []Shape, []Shape) float64 { return 0 }})

	// Transpose exchanges the last two axes.
	Transpose = add(&Operation{name: "transpose", class: Shaped, doc: "the last two axes exchanged",
		formula: "x[..., j, i]", inputs: []string{"x"}, arity: [2]int{1, 1}, shapes: "x [... m n]; gives [... n m]",
		types: anything, shape: transposeShape, ref: transposeReference, special: "Values pass unchanged.",
		flops: func(*Attrs, []Shape, []Shape) float64 { return 0 }})
)

// ReshapeTo returns the parameters of [Reshape]. One extent may be -1.
func ReshapeTo(s ...int) (Attrs, error) {
	var a Attrs
	if len(s) > len(a.I) {
		return a, mismatch("%d extents, the most is %d", len(s), len(a.I))
	}
	for i, d := range s {
		if d < -1 {
			return a, mismatch("negative extent in %v", Shape(s))
		}
		// 0 says that there is no extent, so that the zero Attrs are a scalar.
		a.I[i] = d + 1
		if d == -1 {
			a.I[i] = -1
		}
	}
	return a, nil
}

func anything(_ *Attrs, in []DType) ([]DType, error) {
	return same(in, func(d DType) bool { return d.Size() > 0 })
}

func reshapeShape(a *Attrs, in []Shape) ([]Shape, error) {
	n, err := in[0].Size()
	if err != nil {
		return nil, err
	}
	out := Shape{}
	infer := -1
	for i, v := range a.I {
		switch {
		case v == 0:
			for _, w := range a.I[i:] {
				if w != 0 {
					return nil, mismatch("malformed extents %v", a.I)
				}
			}
		case v > 0:
			out = append(out, v-1)
			continue
		case v == -1 && infer < 0:
			infer = i
			out = append(out, 1)
			continue
		default:
			return nil, mismatch("more than one extent is to follow from the others, or one is negative")
		}
		break
	}
	m, err := out.Size()
	if err != nil {
		return nil, err
	}
	if infer >= 0 {
		if m == 0 || n%m != 0 {
			return nil, mismatch("%v in the shape %v, whose extent %d is to follow", in[0], out, infer)
		}
		out[infer], m = n/m, n
	}
	if m != n {
		return nil, mismatch("%v of %d elements in the shape %v of %d", in[0], n, out, m)
	}
	return []Shape{out}, nil
}

func transposeShape(_ *Attrs, in []Shape) ([]Shape, error) {
	n := len(in[0])
	if n < 2 {
		return nil, mismatch("%v has no two axes", in[0])
	}
	out := append(Shape{}, in[0]...)
	out[n-2], out[n-1] = out[n-1], out[n-2]
	return []Shape{out}, nil
}

func transposeReference(_ *Attrs, in, out []*Array) {
	x, y := in[0], out[0]
	rows, cols := x.Shape[len(x.Shape)-2], x.Shape[len(x.Shape)-1]
	for i, v := range x.Data {
		m, r, c := i/(rows*cols), i/cols%rows, i%cols
		y.Data[m*rows*cols+c*rows+r] = v
	}
}
