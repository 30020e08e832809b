//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

const ropeLanes = 256

type ropeParams struct {
	N     uint32 // number of pairs
	Heads uint32
	Half  uint32 // pairs of a head
	Start int32
}

func readsRope(at int, _ op.Shape, l *op.Layout) bool {
	return at == 0 && !l.Windowed() && neighbours(l)
}

type ropeSpec struct {
	Type                   op.DType
	Positions, Interleaved bool
	// Laid says that x has the layout Layout.
	Laid   bool
	Layout op.Layout
}

// ropes rotates pairs of elements. A lane rotates one pair.
var ropes = maker[ropeParams, ropeSpec]{name: "rope", build: func(b *kernel.Builder, p *ropeParams, s ropeSpec, e *epilogue) {
	b.LocalSize(ropeLanes, 1, 1)
	x := input(b, "x", s.Type)
	if s.Laid {
		read, w := x, walk{off: s.Layout.Off, f: s.Layout.Factors()}
		x = func(i kernel.U32) kernel.F32 {
			at, _ := w.at(i)
			return read(at)
		}
	}
	position := func(row kernel.U32) kernel.I32 { return row.I32().Add(b.I32(&p.Start)) }
	if s.Positions {
		position = kernel.Input[kernel.I32](b, "positions").At
	}
	frequencies := kernel.Input[kernel.F32](b, "frequencies")
	put := e.result(b, s.Type)
	i, half := b.Index(), b.U32(&p.Half)
	b.If(i.Lt(b.U32(&p.N)), func() {
		head, j := i.Div(half), i.Mod(half)
		first := head.Mul(half.Mul(kernel.U(2))).Add(j)
		second := first.Add(half)
		if s.Interleaved {
			first = i.Mul(kernel.U(2))
			second = first.Add(kernel.U(1))
		}
		angle := position(head.Div(b.U32(&p.Heads))).F32().Mul(frequencies.At(j))
		sin, cos := angle.Sin(), angle.Cos()
		u, v := x(first), x(second)
		undefined := notFinite(u).Or(notFinite(v))
		put(first, kernel.Dyn(kernel.Select(undefined, nan(), u.Mul(cos).Sub(v.Mul(sin)))))
		put(second, kernel.Dyn(kernel.Select(undefined, nan(), u.Mul(sin).Add(v.Mul(cos)))))
	})
}}

func notFinite(x kernel.F32) kernel.Bool {
	return x.AsU32().And(kernel.U(infBits)).Eq(kernel.U(infBits))
}

func planRope(q *request) (*Plan, error) {
	s, o := q.In[0].Shape, op.RopeOptsOf(&q.Attrs)
	n, d := size(s)/2, s[2]
	params := ropeParams{uint32(n), uint32(s[1]), uint32(d / 2), int32(o.Start)}
	spec := ropeSpec{Type: q.In[0].Type, Positions: len(q.In) > 1 && q.In[1].Shape != nil, Interleaved: o.Interleaved}
	if l := q.In[0].Layout; l != nil {
		spec.Laid, spec.Layout = true, *l
	}
	var p planner
	bind := q.inputs()
	if len(q.In) <= op.RopeByFrequencies || q.In[op.RopeByFrequencies].Shape == nil {
		bind = append(bind, p.constant(op.RopeFrequencies(d, o.Theta)))
	}
	p.stage(ropes.of(spec, q.epilogue), kernel.GridFor(n, ropeLanes), params, append(bind, q.outputs()...)...)
	return p.done("")
}
