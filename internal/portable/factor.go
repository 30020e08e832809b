//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// One workgroup factors one small matrix in workgroup memory. There are no portable kernels for
// larger matrices.

// factorOf has the greater extent of the matrices, which decides the schedule.
type factorOf struct{ Order int }

type factorSchedule struct {
	Order int // the greatest order of a matrix
	Lanes int
	Votes bool // the kernel uses votes: see [Target.Votes]
}

var factorSchedules = table[factorOf, factorSchedule]{
	{"order16", func(m factorOf, _ *Target) bool { return m.Order <= 16 }, factorSchedule{Order: 16, Lanes: 32}},
	{"order32", func(m factorOf, _ *Target) bool { return m.Order <= 32 }, factorSchedule{Order: 32, Lanes: 128}},
	{"order64", func(m factorOf, _ *Target) bool { return m.Order <= 64 }, factorSchedule{Order: 64, Lanes: 256}},
}

// chooseFactor returns the schedule for matrices with at most order rows and columns, and its name.
func chooseFactor(vs table[factorOf, factorSchedule], q *request, order int) (factorSchedule, string, error) {
	w, name, err := vs.choose(q, factorOf{order})
	w.Votes = q.Target.Votes
	return w, name, err
}

type factorParams struct {
	Batch uint32
	Rows  uint32
	Cols  uint32
	Right uint32 // columns of the right-hand sides
	Parts uint32 // workgroups of a matrix; each has some columns of the right-hand sides
}

// dense describes the matrix of the running workgroup.
type dense struct {
	b          *kernel.Builder
	s          factorSchedule
	t          *laneGroup
	is         kernel.Bool // whether the workgroup has a matrix
	matrix     kernel.U32
	part       kernel.U32
	rows, cols kernel.U32
	x, y       kernel.U32 // position of the lane in a grid of wx by wy lanes
	wx, wy     int
}

// newDense sets the local size and finds the matrix of the workgroup.
func newDense(b *kernel.Builder, p *factorParams, s factorSchedule) *dense {
	layout := groupLayout{GroupLanes: s.Lanes, Groups: 1, Subgroups: s.Votes}
	if s.Votes {
		layout.Size = radixWarp
	}
	d := &dense{b: b, s: s, t: newLaneGroup(b, layout), wx: 16}
	if s.Lanes < 256 {
		d.wx = 8
	}
	d.wy = s.Lanes / d.wx
	d.x, d.y = b.LocalX().Mod(kernel.U(uint32(d.wx))), b.LocalX().Div(kernel.U(uint32(d.wx)))
	parts := b.U32(&p.Parts)
	number := b.Group().Div(parts)
	d.is = number.Lt(b.U32(&p.Batch))
	d.matrix = kernel.Select(d.is, number, kernel.U(0))
	d.part = b.Group().Mod(parts)
	d.rows, d.cols = b.U32(&p.Rows), b.U32(&p.Cols)
	return d
}

// sharedMatrix is a matrix in workgroup memory.
type sharedMatrix struct {
	v      kernel.Array[kernel.F32]
	stride uint32
}

// block declares a matrix in workgroup memory. Its rows begin in different banks.
func (d *dense) block(name string, rows, cols int) sharedMatrix {
	return sharedMatrix{kernel.Shared[kernel.F32](d.b, name, rows*(cols+1)), uint32(cols + 1)}
}

func (m sharedMatrix) place(i, j kernel.U32) kernel.U32  { return i.Mul(kernel.U(m.stride)).Add(j) }
func (m sharedMatrix) at(i, j kernel.U32) kernel.F32     { return m.v.At(m.place(i, j)) }
func (m sharedMatrix) set(i, j kernel.U32, x kernel.F32) { m.v.Set(m.place(i, j), x) }

// less subtracts f·x from an element.
func (m sharedMatrix) less(i, j kernel.U32, f, x kernel.F32) {
	m.set(i, j, f.Neg().MulAdd(x, m.at(i, j)))
}

// line runs f for each i in [from, to), with one lane for each i.
func (d *dense) line(from, to kernel.U32, f func(i kernel.U32)) {
	d.b.ForStep(from.Add(d.b.LocalX()), to, kernel.U(uint32(d.s.Lanes)), f)
}

// each runs f for the elements of rows [i0, i1) and columns [j0, j1), divided among the lanes.
func (d *dense) each(i0, i1, j0, j1 kernel.U32, f func(i, j kernel.U32)) {
	d.b.ForStep(i0.Add(d.y), i1, kernel.U(uint32(d.wy)), func(i kernel.U32) {
		d.b.ForStep(j0.Add(d.x), j1, kernel.U(uint32(d.wx)), func(j kernel.U32) { f(i, j) })
	})
}

// elements runs f for the elements of a matrix of rows·cols in the order of memory. at is the index
// of the element in the array of all matrices.
func (d *dense) elements(rows, cols kernel.U32, f func(i, j, at kernel.U32)) {
	first := d.matrix.Mul(rows).Mul(cols)
	d.line(kernel.U(0), rows.Mul(cols), func(e kernel.U32) { f(e.Div(cols), e.Mod(cols), first.Add(e)) })
}

// write is elements for storing results: it does nothing in a workgroup without a matrix.
func (d *dense) write(rows, cols kernel.U32, f func(i, j, at kernel.U32)) {
	d.b.If(d.is, func() { d.elements(rows, cols, f) })
}

// choleskys factors a matrix column by column, and updates the remaining columns after each one.
var choleskys = maker[factorParams, factorSchedule]{name: "cholesky", build: func(b *kernel.Builder, p *factorParams, s factorSchedule, e *epilogue) {
	d := newDense(b, p, s)
	x := kernel.Input[kernel.F32](b, "a")
	put := e.result(b, op.F32)
	a, n := d.block("l", s.Order, s.Order), d.rows
	d.elements(n, n, func(i, j, at kernel.U32) { a.set(i, j, x.At(at)) })
	bad := kernel.NewVar(b, "bad", kernel.U(0))
	b.For(kernel.U(0), n, func(k kernel.U32) {
		b.Barrier()
		pivot, next := a.at(k, k), k.Add(kernel.U(1))
		// The pivot must be positive and finite. The bits decide this.
		wrong := pivot.AsU32().Sub(kernel.U(1)).Ge(kernel.U(infBits - 1))
		bad.Set(bad.Get().Or(wrong.U32()))
		root := pivot.Sqrt()
		d.line(next, n, func(i kernel.U32) { a.set(i, k, a.at(i, k).Div(root)) })
		b.Barrier()
		d.each(next, n, next, n, func(i, j kernel.U32) {
			b.If(j.Le(i), func() { a.less(i, j, a.at(i, k), a.at(j, k)) })
		})
	})
	b.Barrier()
	d.write(n, n, func(i, j, at kernel.U32) {
		v := kernel.Select(j.Lt(i), a.at(i, j), kernel.F(0))
		v = kernel.Select(j.Eq(i), a.at(i, i).Sqrt(), v)
		put(at, kernel.Dyn(kernel.Select(bad.Get().Eq(kernel.U(0)), v, nan())))
	})
}}

func planCholesky(q *request) (*Plan, error) {
	batch, n, _ := matricesIn(q.In[0].Shape)
	w, name, err := chooseFactor(factorSchedules, q, n)
	if err != nil {
		return nil, err
	}
	var p planner
	p.stage(choleskys.of(w, q.epilogue), kernel.GridOf(batch), factorParams{Batch: uint32(batch), Rows: uint32(n), Cols: uint32(n), Parts: 1}, append(q.inputs(), q.outputs()...)...)
	return p.done(name)
}

// matricesIn returns the number of matrices in shape s, and their extents.
func matricesIn(s op.Shape) (batch, rows, cols int) {
	n := len(s) - 2
	return size(s[:n]), s[n], s[n+1]
}
