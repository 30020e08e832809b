package ptxkernels

import (
	"errors"
	"math"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

func init() { register(planHalfMatMul, op.MatMul) }

// halfProduct describes a product of matrices of 16-bit numbers, or of float32 if TF32 is allowed:
// the sizes, the layouts and the number of matrices. Sums are float32; the result has the type of
// the operands.
type halfProduct struct {
	op.Product
	Type           op.DType
	TransA, TransB bool
	Bias           bool
	after          *epilogue // nil if sums, with the bias, are stored unchanged
}

// maxTF32 is the longest sum of TF32 products. Tensor cores truncate each addend of a sum; up to
// this length the error is within the operation's tolerance.
const maxTF32 = 1 << 16

// planHalfMatMul plans products of f16 and bf16, and of f32 if TF32 is allowed.
func planHalfMatMul(r *portable.Request, d *Device) (*Plan, error) {
	t := r.In[0].Type
	if t != op.F16 && t != op.BF16 && (t != op.F32 || !op.MatMulOptsOf(&r.Attrs).TF32) {
		return nil, unsupported("a product of %v", t)
	}
	sizes, err := op.MatMulOf(&r.Attrs, []op.Shape{r.In[0].Shape, r.In[1].Shape})
	if err != nil {
		return nil, err
	}
	o := op.MatMulOptsOf(&r.Attrs)
	p := &halfProduct{sizes, t, o.TransA, o.TransB, len(r.In) > 2 && r.In[2].Shape != nil, nil}
	if o.Act != nil || r.Post != nil {
		if p.after, err = finish(r, p.N); err != nil {
			return nil, err
		}
	}
	if p.SharedB && !p.TransA { // treat the rows of all matrices as one matrix
		p.M, p.Batch = p.M*p.Batch, 1
	}
	switch {
	case p.K == 0:
		return nil, unsupported("a sum of no terms")
	case t == op.F32 && (p.K > maxTF32 || !p.gains(d)):
		return nil, unsupported("TF32 for %d by %d by %d", p.M, p.K, p.N)
	case p.M <= 2 || p.N == 1:
		// Most of a tile would be empty. The skinny kernel is a fifth faster for 1 or 2 by 8192 by
		// 8192, and as fast for 4.
		return planSkinny(r, d)
	case d.Target == ptx.SM90a:
		best, _ := p.best(d)
		w := preferred(r, d, &best, func(f func(*wgmmaSchedule, float64)) {
			p.schedules(d, func(w wgmmaSchedule, cost float64) { f(&w, cost) })
		})
		plan, err := p.warpgroupsOf(*w, d)
		if errors.Is(err, op.ErrUnsupported) && t == op.F32 {
			return p.warps(d) // this kernel does not transpose A
		}
		return plan, err
	case d.Target >= ptx.SM80:
		return p.warps(d)
	}
	return nil, unsupported("products on %v", d.Target)
}

// gains reports whether a product in TF32 is faster than a float32 product, which copies no operand
// and splits long sums of few results.
func (p *halfProduct) gains(d *Device) bool {
	a, b := p.lay()
	copies := func(m matrix) bool { return m.inner*m.bytes%16 != 0 }
	few, large := p.M, b
	if p.N < p.M {
		few, large = p.N, a
	}
	l := &tf32Limits
	tiny := p.Batch*p.M*p.N <= l.tiny/p.K
	huge := large.count*large.inner >= l.huge/large.outer
	switch {
	case few <= l.few, huge && copies(large) && few <= l.fewOfCopied, tiny && (copies(a) || copies(b)):
		return false
	case d.Target == ptx.SM90a:
		return true
	}
	tiles := p.Batch * ceilDiv(p.M, 64) * ceilDiv(p.N, 64)
	return few > l.fewWarps && (p.K < l.longSum || 4*tiles >= d.Multiprocessors)
}

// tf32Limits are the limits of gains, measured on an H200.
var tf32Limits = struct{ few, fewOfCopied, fewWarps, tiny, huge, longSum int }{
	few:         4,       // rows or columns of the result up to which a float32 product is faster
	fewOfCopied: 48,      // the same, if a huge operand is copied
	fewWarps:    16,      // the same on devices without wgmma
	tiny:        1 << 18, // multiply-adds up to which a product does not pay for copies
	huge:        1 << 22, // elements from which on an operand is read from memory, not from L2
	longSum:     2048,    // terms from which on a sum should be split if there are few tiles
}

// matrix describes count contiguous matrices of one size in memory.
type matrix struct {
	portable.Ref
	off                 int64 // offset of the first matrix in the array, in bytes
	bytes               int   // size of an element
	inner, outer, count int   // elements of a row, rows of a matrix, matrices
	stride              int   // elements from one row to the next, a multiple of 16 bytes
	along               bool  // rows run along the dimension of the sum (K-major)
}

// address returns the address of the first matrix.
func (m matrix) address() Arg { return Arg{Kind: Pointer, Array: m.Ref, Off: m.off} }

// from returns the rows of a single matrix from row on.
func (m matrix) from(row int) matrix {
	m.off += int64(m.bytes) * int64(row) * int64(m.stride)
	m.outer -= row
	return m
}

// tiles returns the tensor map of the matrices.
func (m matrix) tiles(t op.DType, box [2]int) Arg {
	return Arg{Kind: Map, Array: m.Ref, Off: m.off, Tiles: &Tiles{Type: t, Size: []int{m.inner, m.outer, m.count},
		Stride: []int{m.bytes * m.stride, m.bytes * m.stride * m.outer}, Tile: []int{box[0], box[1], 1}, Swizzle: ptx.Swizzle128}}
}

// lay returns the layouts of the operands in memory.
func (p *halfProduct) lay() (a, b matrix) {
	a = matrix{Ref: portable.Ref{Kind: portable.InputRef, Index: 0}, outer: p.M, inner: p.K, count: p.Batch, along: !p.TransA}
	b = matrix{Ref: portable.Ref{Kind: portable.InputRef, Index: 1}, outer: p.K, inner: p.N, count: p.Batch, along: p.TransB}
	if p.TransA {
		a.outer, a.inner = p.K, p.M
	}
	if p.TransB {
		b.outer, b.inner = p.N, p.K
	}
	if p.SharedB {
		b.count = 1
	}
	a.stride, b.stride = a.inner, b.inner
	a.bytes, b.bytes = p.Type.Size(), p.Type.Size()
	return a, b
}

// aligned returns the operands with rows that begin at multiples of 16 bytes. It adds copies to the
// plan for operands whose rows do not, and if copyA or copyB asks for them. If turn is set, the
// copies are K-major.
func (p *halfProduct) aligned(plan *Plan, copyA, copyB, turn bool) (a, b matrix, err error) {
	a, b = p.lay()
	halves := p.Type.Size() / 2 // 16-bit units of an element: copies move 16-bit units
	for i, m := range []*matrix{&a, &b} {
		if m.inner*halves%padEach == 0 && ![]bool{copyA, copyB}[i] {
			continue
		}
		turn := turn && !m.along
		if turn {
			m.inner, m.outer, m.along = m.outer, m.inner, true
		}
		if m.inner > math.MaxInt32/4 {
			return a, b, unsupported("rows of %d elements", m.inner)
		}
		to, rows, stride := len(plan.Scratch), m.outer*m.count, padded(m.inner*halves)
		m.Ref, m.stride = portable.Ref{Kind: portable.ScratchRef, Index: to}, stride/halves
		if rows > math.MaxInt32/stride {
			return a, b, unsupported("%d rows of %d elements", rows, m.stride)
		}
		plan.Scratch = append(plan.Scratch, int64(2*rows*stride))
		if turn {
			if m.count > maxLaidOut || m.inner > maxLaidOut*packTile {
				return a, b, unsupported("%d matrices of %d elements in a row", m.count, m.inner)
			}
			plan.Stages = append(plan.Stages, layOutIn(m.stride, input(i), scratch(to), m.inner, m.outer, m.count, true))
			continue
		}
		plan.Stages = append(plan.Stages, padding(input(i), scratch(to), m.inner*halves, rows))
	}
	return a, b, nil
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
