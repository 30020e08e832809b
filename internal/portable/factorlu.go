//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// eliminate factors the first columns of a matrix with partial pivoting, and applies the same row
// operations to the other columns: all is the number of all columns. One lane calls pivoted for
// each exchange of rows. eliminate returns whether a pivot was zero.
func (d *dense) eliminate(a sharedMatrix, columns, all kernel.U32, pivoted func(k, at kernel.U32)) (singular kernel.Var[kernel.U32]) {
	b, one := d.b, kernel.U(1)
	singular = kernel.NewVar(b, "singular", kernel.U(0))
	b.For(kernel.U(0), columns, func(k kernel.U32) {
		b.Barrier()
		d.t.again()
		key, row := kernel.NewVar(b, "key", kernel.U(0)), kernel.NewVar(b, "row", kernel.U(1<<31))
		d.line(k, d.rows, func(i kernel.U32) { // a lane has at most one row
			key.Set(a.at(i, k).Abs().AsU32().Add(one))
			row.Set(i)
		})
		greatest := d.t.max(key.Get())
		at := d.t.min(kernel.Select(key.Get().Eq(greatest), row.Get(), kernel.U(1<<31)))
		b.If(b.LocalX().Eq(kernel.U(0)), func() { pivoted(k, at) })
		singular.Set(singular.Get().Or(greatest.Eq(one).U32()))
		b.If(at.Ne(k), func() {
			d.line(kernel.U(0), all, func(j kernel.U32) {
				x, y := a.at(k, j), a.at(at, j)
				a.set(k, j, y)
				a.set(at, j, x)
			})
		})
		b.Barrier()
		pivot, next := a.at(k, k), k.Add(one)
		pivot = kernel.Select(pivot.Eq(kernel.F(0)), kernel.F(1), pivot) // the column consists of zeros
		d.line(next, d.rows, func(i kernel.U32) { a.set(i, k, a.at(i, k).Div(pivot)) })
		b.Barrier()
		d.each(next, d.rows, next, all, func(i, j kernel.U32) { a.less(i, j, a.at(i, k), a.at(k, j)) })
	})
	b.Barrier()
	return singular
}

var lus = maker[factorParams, factorSchedule]{name: "lu", build: func(b *kernel.Builder, p *factorParams, s factorSchedule, _ *epilogue) {
	d := newDense(b, p, s)
	x := kernel.Input[kernel.F32](b, "a")
	lu, pivots := kernel.Output[kernel.F32](b, "lu"), kernel.Output[kernel.I32](b, "pivots")
	a, k := d.block("lu_block", s.Order, s.Order), d.rows.Min(d.cols)
	d.elements(d.rows, d.cols, func(i, j, at kernel.U32) { a.set(i, j, x.At(at)) })
	d.eliminate(a, k, d.cols, func(i, at kernel.U32) {
		b.If(d.is, func() { pivots.Set(d.matrix.Mul(k).Add(i), at.I32()) })
	})
	d.write(d.rows, d.cols, func(i, j, at kernel.U32) { lu.Set(at, a.at(i, j)) })
}}

func planLU(q *request) (*Plan, error) {
	batch, m, n := matricesIn(q.In[0].Shape)
	w, name, err := chooseFactor(factorSchedules, q, max(m, n))
	if err != nil {
		return nil, err
	}
	var p planner
	p.stage(lus.of(w, nil), kernel.GridOf(batch), factorParams{Batch: uint32(batch), Rows: uint32(m), Cols: uint32(n), Parts: 1}, append(q.inputs(), q.outputs()...)...)
	return p.done(name)
}

// systemSpec specialises the kernels that solve systems of equations: a workgroup has a matrix and
// some columns of the right-hand sides.
type systemSpec struct {
	factorSchedule
	Right int
	op.SolveTriangularOpts
}

// system is a system of equations in workgroup memory. The columns of the right-hand sides follow
// the columns of the matrix.
type system struct {
	*dense
	a     sharedMatrix
	y     kernel.Buffer[kernel.F32]
	right kernel.U32 // columns of all right-hand sides
	first kernel.U32 // first right-hand side of the workgroup
	all   kernel.U32 // columns of the block in workgroup memory
}

func newSystem(b *kernel.Builder, p *factorParams, s systemSpec, load func(x kernel.Buffer[kernel.F32], i, j, at kernel.U32) kernel.F32) *system {
	d := newDense(b, p, s.factorSchedule)
	x := kernel.Input[kernel.F32](b, "a")
	v := &system{dense: d, a: d.block("system", s.Order, s.Order+s.Right), right: b.U32(&p.Right)}
	v.y = kernel.Input[kernel.F32](b, "b")
	v.first = d.part.Mul(kernel.U(uint32(s.Right)))
	v.all = d.rows.Add(v.right.Sub(v.first).Min(kernel.U(uint32(s.Right))))
	d.elements(d.rows, d.rows, func(i, j, at kernel.U32) { v.a.set(i, j, load(x, i, j, at)) })
	d.each(kernel.U(0), d.rows, d.rows, v.all, func(i, j kernel.U32) { v.a.set(i, j, v.y.At(v.place(i, j))) })
	return v
}

// place returns the position in memory of an element of the right-hand sides.
func (v *system) place(i, j kernel.U32) kernel.U32 {
	return v.matrix.Mul(v.rows).Add(i).Mul(v.right).Add(v.first).Add(j.Sub(v.rows))
}

// substitute solves a triangular system, from the first row on if forward, and from the last row on
// otherwise. If unit is true, the elements of the diagonal count as ones.
func (v *system) substitute(forward, unit bool) {
	b, n := v.b, v.rows
	b.For(kernel.U(0), n, func(turn kernel.U32) {
		k, from, to := turn, turn.Add(kernel.U(1)), n
		if !forward {
			k = n.Sub(kernel.U(1)).Sub(turn)
			from, to = kernel.U(0), k
		}
		b.Barrier()
		if !unit {
			pivot := v.a.at(k, k)
			v.line(n, v.all, func(j kernel.U32) { v.a.set(k, j, v.a.at(k, j).Div(pivot)) })
			b.Barrier()
		}
		v.each(from, to, n, v.all, func(i, j kernel.U32) { v.a.less(i, j, v.a.at(i, k), v.a.at(k, j)) })
	})
	b.Barrier()
}

// write stores the solution.
func (v *system) write(put func(i kernel.U32, x kernel.Dynamic), x func(i, j kernel.U32) kernel.F32) {
	v.b.If(v.is, func() {
		v.each(kernel.U(0), v.rows, v.rows, v.all, func(i, j kernel.U32) { put(v.place(i, j), kernel.Dyn(x(i, j))) })
	})
}

// solves solves systems by elimination, which it applies to the right-hand sides too.
var solves = maker[factorParams, systemSpec]{name: "solve", build: func(b *kernel.Builder, p *factorParams, s systemSpec, e *epilogue) {
	v := newSystem(b, p, s, func(x kernel.Buffer[kernel.F32], _, _, at kernel.U32) kernel.F32 { return x.At(at) })
	put := e.result(b, op.F32)
	singular := v.eliminate(v.a, v.rows, v.all, func(kernel.U32, kernel.U32) {})
	v.substitute(false, false)
	v.write(put, func(i, j kernel.U32) kernel.F32 {
		return kernel.Select(singular.Get().Eq(kernel.U(0)), v.a.at(i, j), nan())
	})
}}

var solveTriangulars = maker[factorParams, systemSpec]{name: "solve_triangular", build: func(b *kernel.Builder, p *factorParams, s systemSpec, e *epilogue) {
	v := newSystem(b, p, s, func(x kernel.Buffer[kernel.F32], i, j, at kernel.U32) kernel.F32 {
		if s.Trans {
			n := b.U32(&p.Rows)
			at = at.Sub(i.Mul(n).Add(j)).Add(j.Mul(n)).Add(i)
			i, j = j, i
		}
		read := j.Lt(i)
		if s.Upper {
			read = j.Gt(i)
		}
		if !s.Unit {
			read = read.Or(i.Eq(j))
		}
		f := kernel.NewVar(b, "f", kernel.F(0))
		b.If(read, func() { f.Set(x.At(at)) })
		return f.Get()
	})
	put := e.result(b, op.F32)
	v.substitute(s.Upper == s.Trans, s.Unit)
	v.write(put, v.a.at)
}}

// systemsOf plans the launch of a kernel that solves systems.
func systemsOf(q *request, m *maker[factorParams, systemSpec], o op.SolveTriangularOpts) (*Plan, error) {
	batch, n, _ := matricesIn(q.In[0].Shape)
	_, _, right := matricesIn(q.In[1].Shape)
	w, name, err := chooseFactor(factorSchedules, q, n)
	if err != nil {
		return nil, err
	}
	s := systemSpec{w, 64, o}
	for _, some := range []int{16, 4} {
		if right <= some {
			s.Right = some
		}
	}
	parts := (right-1)/s.Right + 1
	var p planner
	p.stage(m.of(s, q.epilogue), kernel.GridOf(batch*parts), factorParams{uint32(batch), uint32(n), uint32(n), uint32(right), uint32(parts)}, append(q.inputs(), q.outputs()...)...)
	return p.done(name)
}

func planSolve(q *request) (*Plan, error) { return systemsOf(q, &solves, op.SolveTriangularOpts{}) }

func planSolveTriangular(q *request) (*Plan, error) {
	return systemsOf(q, &solveTriangulars, op.SolveTriangularOptsOf(&q.Attrs))
}
