//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

const partLanes = 256

// partSpec specialises the kernels that add partial sums to a result.
type partSpec struct {
	Type op.DType
	Bias bool
	Wide bool // read and write vectors of four
}

type partParams struct {
	N, Parts uint32 // N is the number of vectors, or of elements, of the result
	Cols     uint32 // vectors or elements of a row of the result; a bias has one row
	First    uint32 // position of the first vector or element in the result
}

// addedParts adds the parts of each element of a result. The parts are consecutive arrays.
var addedParts = maker[partParams, partSpec]{name: "add_parts", build: func(b *kernel.Builder, p *partParams, s partSpec, e *epilogue) {
	b.LocalSize(partLanes, 1, 1)
	i, n := b.Index(), b.U32(&p.N)
	if s.Wide {
		addedPart(b, kernel.Input[kernel.Vec4F](b, "parts"), i, n, b.U32(&p.Parts), func() func(v kernel.Vec4F) {
			bias := optional(b, "bias", s.Type, s.Bias)
			put := e.result4(b, s.Type)
			return func(v kernel.Vec4F) {
				at := b.U32(&p.First).Add(i)
				if s.Bias {
					var x [4]kernel.F32
					for c := range x {
						x[c] = bias(at.Mul(kernel.U(4)).Add(kernel.U(uint32(c))).Mod(b.U32(&p.Cols)), v.At(c))
					}
					v = b.Vec4F(x[0], x[1], x[2], x[3])
				}
				put(at, kernel.Dyn(v))
			}
		})
		return
	}
	addedPart(b, kernel.Input[kernel.F32](b, "parts"), i, n, b.U32(&p.Parts), func() func(v kernel.F32) {
		bias := optional(b, "bias", s.Type, s.Bias)
		put := e.result(b, s.Type)
		return func(v kernel.F32) {
			at := b.U32(&p.First).Add(i)
			if s.Bias {
				v = bias(at.Mod(b.U32(&p.Cols)), v)
			}
			put(at, kernel.Dyn(v))
		}
	})
}}

// addedPart adds the parts of one element or vector, and calls the function that finish returns
// with the sum.
func addedPart[T interface {
	kernel.F32 | kernel.Vec4F
	Add(y T) T
}](b *kernel.Builder, parts kernel.Buffer[T], i, n, count kernel.U32, finish func() func(v T)) {
	put := finish()
	b.If(i.Lt(n), func() {
		sum := kernel.NewVar(b, "sum", parts.At(i))
		b.For(kernel.U(1), count, func(part kernel.U32) {
			sum.Set(sum.Get().Add(parts.At(part.Mul(n).Add(i))))
		})
		put(sum.Get())
	})
}

// addParts adds the stage that computes n elements of the first result of q, from element first on:
// the sums of their parts plus the bias, if q has one. The bias has cols elements.
func (p *planner) addParts(q *request, sums Ref, first, n, parts, cols int) {
	s := partSpec{Type: q.types[0], Wide: cols%4 == 0 && first%4 == 0 && n%4 == 0 && size(q.Out[0].Shape)%4 == 0 && q.epilogue.vectors(max(4, cols))}
	bind := []Ref{sums}
	if s.Bias = cols > 0 && len(q.In) > 2 && q.In[2].Shape != nil; s.Bias {
		bind = append(bind, Ref{InputRef, 2})
	}
	unit := 1
	if s.Wide {
		unit = 4
	}
	p.stage(addedParts.of(s, q.epilogue), kernel.GridFor(n/unit, partLanes), partParams{uint32(n / unit), uint32(parts), uint32(cols), uint32(first / unit)}, append(bind, q.outputs()...)...)
}
