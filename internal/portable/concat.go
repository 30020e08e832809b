//go:build !js || !nowebgpu

package portable

import (
	"math"

	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

const concatLanes = 256

// concatOf has the properties that decide how parts are moved.
type concatOf struct {
	Vectors bool // all rows are multiples of four elements, and begin at multiples of four
}

var concatSchedules = table[concatOf, int]{
	{"vector", func(m concatOf, _ *Target) bool { return m.Vectors }, 4},
	{"scalar", func(concatOf, *Target) bool { return true }, 1},
}

// concatParams are the parameters of concats, in vectors.
type concatParams struct {
	N     uint32 // vectors of the part
	Row   uint32 // vectors of a row of the part
	Pitch uint32 // vectors of a row of the result
	At    uint32 // position of the part in a row of the result
}

type concatSpec struct {
	Type  op.DType
	Width int
	// Laid says that the arrays that the kernel moves have the strided Layout, and that their
	// memory is a whole number of vectors.
	Laid   bool
	Layout op.Layout
}

// concatVectors reports whether array a can be moved in vectors with the specification from
// concatSpec.of.
func concatVectors(a *Array) bool {
	if a.Type.Size() != 4 || a.Layout == nil {
		return a.Type.Size() == 4
	}
	_, stride, ok := inVectors(&Operand{Type: a.Type, N: a.N, Layout: a.Layout})
	return ok && stride == 1
}

// of returns the specification for moving array a.
func (s concatSpec) of(a *Array) concatSpec {
	if a.Layout != nil {
		s.Laid, s.Layout = true, *a.Layout
	}
	return s
}

// mover declares an operand and the result, and returns a function that moves the vector at from to
// the vector at to.
func (s *concatSpec) mover(b *kernel.Builder, name string, e *epilogue) func(to, from kernel.U32) {
	if s.Width == 4 {
		x, y := kernel.Input[kernel.Vec4U](b, name), kernel.Output[kernel.Vec4U](b, "out")
		read := x.At
		if s.Laid {
			w, _, _ := inVectors(&Operand{Type: s.Type, Layout: &s.Layout})
			read = func(i kernel.U32) kernel.Vec4U {
				at, is := w.at(i)
				return kernel.As[kernel.Vec4U](b, w.filled(b, kernel.Dyn(x.At(at)), is, s.Layout.Fill, op.U32, 4))
			}
		}
		return func(to, from kernel.U32) { y.Set(to, read(from)) }
	}
	read, put := inputBits(b, name, s.Type), e.bits(b, s.Type)
	if s.Laid {
		x, w := read, walk{off: s.Layout.Off, fill: s.Layout.Windowed(), f: s.Layout.Factors()}
		fill := s.Layout.Fill
		if s.Type == op.F16 {
			fill = math.Float32bits(float32(s.Type.Float64([]byte{byte(fill), byte(fill >> 8)}, 0)))
		}
		read = func(i kernel.U32) kernel.U32 {
			at, is := w.at(i)
			return kernel.As[kernel.U32](b, w.filled(b, kernel.Dyn(x(at)), is, fill, op.U32, 1))
		}
	}
	return func(to, from kernel.U32) { put(to, read(from)) }
}

// concats copies one part to its position in the result. A lane moves one vector.
var concats = maker[concatParams, concatSpec]{name: "concat", build: func(b *kernel.Builder, p *concatParams, s concatSpec, e *epilogue) {
	b.LocalSize(concatLanes, 1, 1)
	move := s.mover(b, "x", e)
	row := b.U32(&p.Row)
	i := b.Index()
	b.If(i.Lt(b.U32(&p.N)), func() {
		move(i.Div(row).Mul(b.U32(&p.Pitch)).Add(b.U32(&p.At)).Add(i.Mod(row)), i)
	})
}}

// planConcat plans one launch for each part that has elements.
func planConcat(q *request) (*Plan, error) {
	shapes := make([]op.Shape, len(q.In))
	for i, x := range q.In {
		shapes[i] = x.Shape
	}
	axis, err := op.ConcatOf(&q.Attrs, shapes)
	if err != nil {
		return nil, err
	}
	inner := size(q.shapes[0][axis+1:])
	m := concatOf{Vectors: q.epilogue == nil}
	for i, s := range shapes {
		m.Vectors = m.Vectors && s[axis]*inner%4 == 0 && concatVectors(&q.In[i])
	}
	width, name, err := concatSchedules.choose(q, m)
	if err != nil {
		return nil, err
	}
	var p planner
	at, pitch := 0, q.shapes[0][axis]*inner
	in := q.inputs()
	for i, s := range shapes {
		row, n := s[axis]*inner, size(s)
		if n > 0 {
			params := concatParams{uint32(n / width), uint32(row / width), uint32(pitch / width), uint32(at / width)}
			p.stage(concats.of(concatSpec{Type: q.In[0].Type, Width: width}.of(&q.In[i]), q.epilogue), kernel.GridFor(n/width, concatLanes), params,
				append([]Ref{in[i]}, q.outputs()...)...)
		}
		at += row
	}
	return p.done(name)
}
