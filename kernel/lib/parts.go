package lib

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

const partLanes = 256

// partSpec is how sums of parts become a result.
type partSpec struct {
	Type op.DType
	Bias bool
}

type partParams struct {
	N, Parts uint32
	Cols     uint32 // of a row of the result, which a bias is for
}

// addedParts adds up the parts of each element of a result, which stand one array
// behind the other.
var addedParts = newMaker("add_parts", func(b *kernel.Builder, p *partParams, s partSpec, e *epilogue) {
	b.LocalSize(partLanes, 1, 1)
	parts := kernel.Input[kernel.F32](b, "parts")
	bias := optional(b, "bias", s.Type, s.Bias)
	put := e.result(b, s.Type)
	i, n := b.Index(), b.U32(&p.N)
	b.If(i.Lt(n), func() {
		sum := kernel.NewVar(b, "sum", parts.At(i))
		b.For(kernel.U(1), b.U32(&p.Parts), func(part kernel.U32) {
			sum.Set(sum.Get().Add(parts.At(part.Mul(n).Add(i))))
		})
		v := sum.Get()
		if s.Bias {
			v = bias(i.Mod(b.U32(&p.Cols)), v)
		}
		put(i, kernel.Dyn(v))
	})
})

// addParts adds the stage that makes the first result of q, of n elements, from
// sums of parts: plus the bias, if q has one, of cols elements.
func (p *planner) addParts(q *request, sums Ref, n, parts, cols int) {
	s := partSpec{Type: q.types[0]}
	bind := []Ref{sums}
	if s.Bias = cols > 0 && len(q.In) > 2 && q.In[2].Shape != nil; s.Bias {
		bind = append(bind, Ref{InputRef, 2})
	}
	p.stage(addedParts.of(s, q.epilogue), kernel.GridFor(n, partLanes), partParams{uint32(n), uint32(parts), uint32(cols)}, append(bind, q.outputs()...)...)
}
