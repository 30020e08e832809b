//go:build !js || !nowebgpu

package portable

import (
	"math"

	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// Sums of integers, which wrap around, and their extremes do not depend on the order of the elements:
// atomic operations fold the elements of a scatter straight into the result.

const (
	// atomicWords is the maximum number of elements of a result that each workgroup first folds in its
	// own memory, so that fewer atomic operations wait for each other. With manyAtomicBytes of such memory
	// it is manyAtomicWords.
	atomicWords, manyAtomicWords = 2048, 8192
	manyAtomicBytes              = 4 * manyAtomicWords
	// atomicChunk is the number of elements that a workgroup folds in its own memory. A lane loads
	// atomicLoads of them before it folds the first.
	atomicChunk, atomicLoads = 4096, 8
)

// atomicSpec specialises the kernel. If Words is not 0, workgroups fold in as many words of their own
// memory first.
type atomicSpec struct {
	Type   op.DType
	Reduce op.ScatterReduce
	Words  int
}

// atomic reports whether atomic operations can compute the scatter.
func (m scatterOf) atomic() bool {
	return m.Integer && !m.Fused && (m.Reduce == op.ScatterAdd || m.Reduce == op.ScatterMin || m.Reduce == op.ScatterMax)
}

// words returns the size of the memory in which a workgroup can fold a part of the elements, or 0.
func (m scatterOf) words(t *Target) int {
	n := m.Outer * m.Extent * m.Inner
	switch {
	case !m.atomic():
		return 0
	case n <= atomicWords:
		return atomicWords
	case n <= manyAtomicWords && t.Shared >= manyAtomicBytes:
		return manyAtomicWords
	}
	return 0
}

// scatterAtomics folds the elements of v into the result, which already has the elements of x.
var scatterAtomics = maker[scatterParams, atomicSpec]{name: "scatter_atomic", build: func(b *kernel.Builder, p *scatterParams, s atomicSpec, _ *epilogue) {
	if s.Type == op.I32 {
		buildAtomics(b, p, s, [3]kernel.I32{kernel.I(0), kernel.I(math.MaxInt32), kernel.I(math.MinInt32)}, kernel.U32.I32)
		return
	}
	buildAtomics(b, p, s, [3]kernel.U32{kernel.U(0), kernel.U(math.MaxUint32), kernel.U(0)}, func(v kernel.U32) kernel.U32 { return v })
}}

// buildAtomics builds the kernel for integers of type T. identities are those of a sum, a minimum and a
// maximum, and number returns the integer with the given bits.
func buildAtomics[T interface {
	kernel.Integer
	Ne(T) kernel.Bool
}](b *kernel.Builder, p *scatterParams, s atomicSpec, identities [3]T, number func(bits kernel.U32) T) {
	b.LocalSize(scatterLanes, 1, 1)
	ids, v := kernel.Input[kernel.I32](b, "ids"), inputBits(b, "v", s.Type)
	y := kernel.Atomic[T](b, "out")
	fold, identity := kernel.Atomics[T].Add, identities[0]
	switch s.Reduce {
	case op.ScatterMin:
		fold, identity = kernel.Atomics[T].Min, identities[1]
	case op.ScatterMax:
		fold, identity = kernel.Atomics[T].Max, identities[2]
	}
	inner, extent, n, all := b.U32(&p.Inner), b.U32(&p.Extent), b.U32(&p.IDs), b.U32(&p.N)
	// read returns the place of element i of v in the result, whether it has one, and the element.
	read := func(i kernel.U32) (at kernel.U32, is kernel.Bool, x T) {
		line := i.Div(inner)
		row, is := rowOf(ids.At(line.Mod(n)), extent)
		return line.Div(n).Mul(extent).Add(row).Mul(inner).Add(i.Mod(inner)), is, number(v(i))
	}
	if s.Words == 0 {
		i := b.Index()
		b.If(i.Lt(all), func() {
			at, is, x := read(i)
			b.If(is, func() { fold(y, at, x) })
		})
		return
	}
	own, lanes, words := kernel.SharedAtomic[T](b, "own", s.Words), kernel.U(scatterLanes), y.Len()
	b.ForStep(b.LocalX(), words, lanes, func(i kernel.U32) { own.Store(i, identity) })
	b.Barrier()
	from := b.Group().Mul(kernel.U(atomicChunk))
	end := from.Add(kernel.U(atomicChunk)).Min(all)
	b.ForStep(from.Add(b.LocalX()), end, kernel.U(atomicLoads*scatterLanes), func(i kernel.U32) {
		var folds [atomicLoads]func()
		for k := range folds {
			next := i.Add(kernel.U(uint32(k * scatterLanes)))
			at, is, x := read(next.Min(end.Sub(kernel.U(1))))
			folds[k] = func() { b.If(is.And(next.Lt(end)), func() { fold(own, at, x) }) }
		}
		for _, f := range folds {
			f()
		}
	})
	b.Barrier()
	b.ForStep(b.LocalX(), words, lanes, func(i kernel.U32) {
		part := own.Load(i)
		b.If(part.Ne(identity), func() { fold(y, i, part) })
	})
}

// scatterByAtomics adds the launches of a scatter by atomic operations.
// words is the size of the memory in which workgroups fold first, or 0.
func (p *planner) scatterByAtomics(spec scatterSpec, q *request, s op.Indexed, words int) {
	in, n := q.inputs(), s.Outer*s.IDs*s.Inner
	if !q.InPlace {
		p.copyOperand(q, s)
	}
	grid := kernel.GridFor(n, scatterLanes)
	if words > 0 {
		grid = kernel.GridFor(n, atomicChunk)
	}
	params := scatterParams{uint32(n), uint32(s.Inner), uint32(s.Extent), uint32(s.IDs)}
	p.stage(scatterAtomics.of(atomicSpec{spec.Type, spec.Reduce, words}, nil), grid, params, append([]Ref{in[1], in[2]}, q.outputs()...)...)
}

// copyOperand adds the launch that copies the first operand of a scatter to the result.
func (p *planner) copyOperand(q *request, s op.Indexed) {
	n := s.Outer * s.Extent * s.Inner
	whole := concatParams{uint32(n), uint32(n), uint32(n), 0}
	p.stage(concats.of(concatSpec{Type: q.In[0].Type, Width: 1}, q.epilogue), kernel.GridFor(n, concatLanes), whole, append([]Ref{q.inputs()[0]}, q.outputs()...)...)
}
