//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
)

type qrSpec struct {
	factorSchedule
	Trans bool // the factors are those of the transpose
}

// load reads a matrix of rows·cols, or its transpose, into workgroup memory. It multiplies the
// elements by a power of two, so that the greatest one is about 1, and returns the inverse of this
// power and whether all elements are finite.
func (d *dense) load(a sharedMatrix, rows, cols kernel.U32, trans bool, x func(i, j, at kernel.U32) kernel.F32) (back kernel.F32, finite kernel.Bool) {
	b := d.b
	most := kernel.NewVar(b, "most", kernel.U(0))
	d.elements(rows, cols, func(i, j, at kernel.U32) {
		v := x(i, j, at)
		most.Set(most.Get().Max(v.AsU32().And(kernel.U(0x7fffffff))))
		if trans {
			i, j = j, i
		}
		a.set(i, j, v)
	})
	greatest := d.t.max(most.Get())
	exponent := greatest.Shr(kernel.U(23)).Max(kernel.U(1)).Min(kernel.U(253))
	factor := kernel.U(254).Sub(exponent).Shl(kernel.U(23)).AsF32()
	b.Barrier()
	if trans {
		rows, cols = cols, rows
	}
	d.each(kernel.U(0), rows, kernel.U(0), cols, func(i, j kernel.U32) { a.set(i, j, a.at(i, j).Mul(factor)) })
	return exponent.Shl(kernel.U(23)).AsF32(), greatest.Lt(kernel.U(infBits))
}

// negligibleSquare is a squared length. A shorter column counts as zero, if the greatest element of
// the matrix is about 1.
const negligibleSquare = 1e-30

// reflections holds the vectors v of Householder reflections and the numbers 2/vᵀv. The columns of
// a hold the vectors from the diagonal on, and head holds the first element of each. The product of
// the matrices I - 2·v·vᵀ/vᵀv is Qᵀ.
type reflections struct {
	*dense
	a                 sharedMatrix
	part              kernel.Array[kernel.F32]
	head, scale, diag kernel.Array[kernel.F32]
	col, slice        kernel.U32 // each lane has one column, and one of the slices of its rows
	slices            int
}

func newReflections(d *dense, a sharedMatrix) *reflections {
	n := uint32(d.s.Order)
	r := &reflections{dense: d, a: a, col: d.b.LocalX().Mod(kernel.U(n)), slice: d.b.LocalX().Div(kernel.U(n)), slices: d.s.Lanes / d.s.Order}
	shared := func(name string, n int) kernel.Array[kernel.F32] { return kernel.Shared[kernel.F32](d.b, name, n) }
	r.part, r.head, r.scale, r.diag = shared("part", d.s.Lanes), shared("head", int(n)), shared("scale", int(n)), shared("diag", int(n))
	return r
}

// eachRow runs f for the rows of the lane from j on.
func (r *reflections) eachRow(j, to kernel.U32, f func(i kernel.U32)) {
	r.b.ForStep(j.Add(r.slice), to, kernel.U(uint32(r.slices)), f)
}

// dot returns a function that gives the product of v and column c of m, in the lanes of column c.
// dot contains a barrier.
func (r *reflections) dot(j, to, cols kernel.U32, v func(i kernel.U32) kernel.F32, m sharedMatrix) func(c kernel.U32) kernel.F32 {
	sum := kernel.NewVar(r.b, "sum", kernel.F(0))
	r.b.If(r.col.Lt(cols), func() {
		r.eachRow(j, to, func(i kernel.U32) { sum.Set(v(i).MulAdd(m.at(i, r.col), sum.Get())) })
	})
	r.part.Set(r.b.LocalX(), sum.Get())
	r.b.Barrier()
	return func(c kernel.U32) kernel.F32 {
		return chain(r.slices, kernel.F32.Add, func(k int) kernel.F32 { return r.part.At(c.Add(kernel.U(uint32(k * r.s.Order)))) })
	}
}

// column returns a function that gives element i of the vector of reflection j.
func (r *reflections) column(j kernel.U32, head kernel.F32) func(i kernel.U32) kernel.F32 {
	return func(i kernel.U32) kernel.F32 { return kernel.Select(i.Eq(j), head, r.a.at(i, j)) }
}

// factor replaces matrix A, of m rows and n columns, by R in the upper triangle and the vectors of
// k reflections below it.
func (r *reflections) factor(m, n, k kernel.U32) {
	b := r.b
	b.For(kernel.U(0), k, func(j kernel.U32) {
		b.Barrier()
		top := r.a.at(j, j)
		dot := r.dot(j, m, n, func(i kernel.U32) kernel.F32 { return r.a.at(i, j) }, r.a)
		square := dot(j)
		zero := square.Lt(kernel.F(negligibleSquare))
		length := square.Sqrt()
		beta := kernel.Select(zero, top, length.CopySign(top).Neg())
		head := top.Sub(beta)
		scale := kernel.Select(zero, kernel.F(0), kernel.F(1).Div(length.Mul(length.Add(top.Abs()))))
		w := kernel.NewVar(b, "w", kernel.F(0))
		mine := r.col.Gt(j).And(r.col.Lt(n))
		b.If(mine, func() { w.Set(dot(r.col).Sub(beta.Mul(r.a.at(j, r.col))).Mul(scale)) })
		b.Barrier()
		b.If(b.LocalX().Eq(kernel.U(0)), func() {
			r.head.Set(j, head)
			r.scale.Set(j, scale)
			r.diag.Set(j, beta)
		})
		v := r.column(j, head)
		b.If(mine, func() {
			r.eachRow(j, m, func(i kernel.U32) { r.a.less(i, r.col, v(i), w.Get()) })
		})
	})
	b.Barrier()
}

// orthonormal computes the first k columns of Q in q.
func (r *reflections) orthonormal(q sharedMatrix, m, k kernel.U32) {
	b := r.b
	r.each(kernel.U(0), m, kernel.U(0), k, func(i, j kernel.U32) {
		q.set(i, j, kernel.Select(i.Eq(j), kernel.F(1), kernel.F(0)))
	})
	b.For(kernel.U(0), k, func(turn kernel.U32) {
		j := k.Sub(kernel.U(1)).Sub(turn)
		b.Barrier()
		v := r.column(j, r.head.At(j))
		dot := r.dot(j, m, k, v, q)
		b.If(r.col.Lt(k), func() {
			w := dot(r.col).Mul(r.scale.At(j))
			r.eachRow(j, m, func(i kernel.U32) { q.less(i, r.col, v(i), w) })
		})
	})
	b.Barrier()
}

var qrs = maker[factorParams, qrSpec]{name: "qr", build: func(b *kernel.Builder, p *factorParams, s qrSpec, _ *epilogue) {
	d := newDense(b, p, s.factorSchedule)
	x := kernel.Input[kernel.F32](b, "a")
	qOut, rOut := kernel.Output[kernel.F32](b, "q"), kernel.Output[kernel.F32](b, "r")
	a, q := d.block("reflected", s.Order, s.Order), d.block("q_block", s.Order, s.Order)
	back, _ := d.load(a, d.rows, d.cols, s.Trans, func(_, _, at kernel.U32) kernel.F32 { return x.At(at) })
	m, n := d.rows, d.cols
	if s.Trans {
		m, n = n, m
	}
	k := m.Min(n)
	r := newReflections(d, a)
	r.factor(m, n, k)
	d.write(k, n, func(i, j, at kernel.U32) {
		v := kernel.Select(j.Gt(i), a.at(i, j), kernel.F(0))
		rOut.Set(at, kernel.Select(j.Eq(i), r.diag.At(i), v).Mul(back))
	})
	r.orthonormal(q, m, k)
	d.write(m, k, func(i, j, at kernel.U32) { qOut.Set(at, q.at(i, j)) })
}}

func planQR(q *request) (*Plan, error) {
	batch, m, n := matricesIn(q.In[0].Shape)
	w, name, err := chooseFactor(factorSchedules, q, max(m, n))
	if err != nil {
		return nil, err
	}
	var p planner
	p.stage(qrs.of(qrSpec{factorSchedule: w}, nil), kernel.GridOf(batch), factorParams{Batch: uint32(batch), Rows: uint32(m), Cols: uint32(n), Parts: 1}, append(q.inputs(), q.outputs()...)...)
	return p.done(name)
}
