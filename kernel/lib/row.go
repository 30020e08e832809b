package lib

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// A row operation gives a row for each row. A team keeps a row of moderate
// length in the registers of its lanes; longer ones it reads again for each pass.

// rowWay is how rows are divided.
type rowWay struct {
	crew
	Held int // elements that a lane holds in registers, 0 for none
}

var rowWays = table[rowsOf, rowWay]{
	{"quad", fitsRow(4*4, false), rowWay{crew{4, 32, false}, 4}},
	{"team", fitsRow(32*4, false), rowWay{crew{32, 4, false}, 4}},
	{"group4-subgroups", fitsRow(256*4, true), rowWay{crew{256, 1, true}, 4}},
	{"group4", fitsRow(256*4, false), rowWay{crew{256, 1, false}, 4}},
	{"group16-subgroups", fitsRow(256*16, true), rowWay{crew{256, 1, true}, 16}},
	{"group16", fitsRow(256*16, false), rowWay{crew{256, 1, false}, 16}},
	{"loop-subgroups", fitsRow(longestRow, true), rowWay{crew{256, 1, true}, 0}},
	{"loop", fitsRow(longestRow, false), rowWay{crew{256, 1, false}, 0}},
}

// fitsRow returns whether rows have at most so many elements and the target has
// subgroups, where they are needed.
func fitsRow(cols int, subgroups bool) func(m rowsOf, t *Target) bool {
	return func(m rowsOf, t *Target) bool { return m.Cols <= cols && (t.Subgroups || !subgroups) }
}

type rowParams struct {
	Rows, Cols uint32
	Count      float32 // elements of a row
	Eps        float32
}

// rowSpec is what kernels of rows are specialised by.
type rowSpec struct {
	Op   string
	Type op.DType
	rowWay
	Weights int // operands beside x
}

// rowFamily returns the family of row operations whose kernels m makes.
func rowFamily(m *maker[rowParams, rowSpec]) *family {
	return &family{variants: rowWays.names(), plan: func(q *request) (*Plan, error) {
		a := rowsOf{}
		a.Rows, a.Cols = q.In[0].Shape.Rows()
		w, name, err := rowWays.choose(q, a)
		if err != nil {
			return nil, err
		}
		bind := q.inputs()
		s := rowSpec{Op: q.Op.Name(), Type: q.In[0].Type, rowWay: w}
		for i := 1; i < len(q.In); i++ {
			if q.In[i].Shape != nil {
				s.Weights |= 1 << i
			}
		}
		params := rowParams{uint32(a.Rows), uint32(a.Cols), float32(a.Cols), op.NormOptsOf(&q.Attrs).Eps}
		var p planner
		p.stage(m.of(s, q.epilogue), w.groups(a.Rows), params, append(bind, q.outputs()...)...)
		return p.done(name)
	}}
}

// row is the row of a team, or none.
type row struct {
	b     *kernel.Builder
	t     *team
	x     func(i kernel.U32) kernel.F32
	start kernel.U32
	cols  kernel.U32   // 0 for a team that has no row
	held  []kernel.F32 // the lane's elements, if they are kept
}

// newRow returns the row of a team, of which x reads elements.
func newRow(t *team, rows, cols kernel.U32, held int, x func(i kernel.U32) kernel.F32) *row {
	b := t.b
	is := t.number.Lt(rows)
	r := &row{b: b, t: t, x: x, cols: kernel.Select(is, cols, kernel.U(0))}
	r.start = kernel.Select(is, t.number, kernel.U(0)).Mul(cols)
	for k := range held {
		j := r.place(k)
		v := kernel.NewVar(b, "x", kernel.F(0))
		b.If(j.Lt(r.cols), func() { v.Set(x(r.start.Add(j))) })
		r.held = append(r.held, v.Get())
	}
	return r
}

// place returns where in the row element k of those that the lane holds is.
func (r *row) place(k int) kernel.U32 { return r.t.lane.Add(kernel.U(uint32(k * r.t.Team))) }

// each runs f for the lane's elements: j is the place in the row.
func (r *row) each(f func(j kernel.U32, x kernel.F32)) {
	for k, x := range r.held {
		j := r.place(k)
		r.b.If(j.Lt(r.cols), func() { f(j, x) })
	}
	if len(r.held) == 0 {
		r.b.ForStep(r.t.lane, r.cols, kernel.U(uint32(r.t.Team)), func(j kernel.U32) { f(j, r.x(r.start.Add(j))) })
	}
}

// sum returns the sum of f over the row, in every lane of the team.
func (r *row) sum(f func(x kernel.F32) kernel.F32) kernel.F32 {
	if len(r.held) == 0 {
		return r.t.sum(total(r.b, r.t.lane, r.cols, r.t.Team, func(acc kernel.F32, j kernel.U32) kernel.F32 {
			return acc.Add(f(r.x(r.start.Add(j))))
		}))
	}
	s := kernel.NewVar(r.b, "s", kernel.F(0))
	r.each(func(_ kernel.U32, x kernel.F32) { s.Set(s.Get().Add(f(x))) })
	return r.t.sum(s.Get())
}

// most returns the greatest key of the row, 0 for none, likewise.
func (r *row) most() kernel.U32 {
	m := kernel.NewVar(r.b, "m", kernel.U(0))
	r.each(func(_ kernel.U32, x kernel.F32) { m.Set(m.Get().Max(keyOf(x.AsU32()))) })
	return r.t.most(m.Get())
}
