package lib

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

func init() { register(&family{plan: planMatVec, variants: matVecWays.names()}, op.MatVec) }

// matVecOf is what decides how a matrix and a vector are multiplied: M rows and
// K columns, in memory the other way round if Trans.
type matVecOf struct {
	M, K  int
	Trans bool
}

var matVecWays = table[matVecOf, crew]{
	{"row-subgroups", func(m matVecOf, t *Target) bool { return !m.Trans && m.K > 2048 && t.Subgroups }, crew{256, 1, true}},
	{"row", func(m matVecOf, _ *Target) bool { return !m.Trans && m.K > 2048 }, crew{256, 1, false}},
	{"team", func(m matVecOf, _ *Target) bool { return !m.Trans }, crew{32, 4, false}},
	{"columns", func(m matVecOf, _ *Target) bool { return m.Trans }, crew{32, 8, false}},
}

type matVecSpec struct {
	crew
	Type        op.DType
	Trans, Long bool
}

type matVecParams struct{ M, K uint32 }

var matVecs = newMaker("matvec", func(b *kernel.Builder, p *matVecParams, s matVecSpec, e *epilogue) {
	m, k := b.U32(&p.M), b.U32(&p.K)
	if s.Trans {
		columnsTimesVector(b, s, e, m, k)
		return
	}
	t := newTeam(b, s.crew)
	a, x := input(b, "a", s.Type), input(b, "x", s.Type)
	put := e.result(b, s.Type)
	row := t.number.Min(m.Sub(kernel.U(1))) // teams beyond the end do the last row again
	sum := addUp(b, t.lane, k, s.Team, 1, s.Long, func(j kernel.U32) []kernel.F32 {
		return []kernel.F32{a(row.Mul(k).Add(j)).Mul(x(j))}
	})
	total := t.sum(sum[0])
	b.If(t.lane.Eq(kernel.U(0)).And(t.number.Lt(m)), func() { put(row, kernel.Dyn(total)) })
})

// columnsTimesVector: neighbouring lanes have neighbouring rows of the result,
// and the teams of a workgroup share the terms.
func columnsTimesVector(b *kernel.Builder, s matVecSpec, e *epilogue, m, k kernel.U32) {
	b.LocalSize(s.Team, s.Teams, 1)
	a, x := input(b, "a", s.Type), input(b, "x", s.Type)
	put := e.result(b, s.Type)
	sums := kernel.Shared[kernel.F32](b, "sums", s.lanes())
	i := b.Group().Mul(kernel.U(uint32(s.Team))).Add(b.LocalX())
	row := i.Min(m.Sub(kernel.U(1)))
	sum := addUp(b, b.LocalY(), k, s.Teams, 1, s.Long, func(j kernel.U32) []kernel.F32 {
		return []kernel.F32{a(j.Mul(m).Add(row)).Mul(x(j))}
	})
	sums.Set(b.Lane(), sum[0])
	b.Barrier()
	b.If(b.LocalY().Eq(kernel.U(0)).And(i.Lt(m)), func() {
		total := sums.At(b.LocalX())
		for t := 1; t < s.Teams; t++ {
			total = total.Add(sums.At(b.LocalX().Add(kernel.U(uint32(t * s.Team)))))
		}
		put(i, kernel.Dyn(total))
	})
}

func planMatVec(q *request) (*Plan, error) {
	m := matVecOf{Trans: op.MatVecOptsOf(&q.Attrs).Trans}
	m.M, m.K = q.In[0].Shape[0], q.In[0].Shape[1]
	if m.Trans {
		m.M, m.K = m.K, m.M
	}
	c, name, err := matVecWays.choose(q, m)
	if err != nil {
		return nil, err
	}
	s := matVecSpec{crew: c, Type: q.In[0].Type, Trans: m.Trans, Long: m.K > exactTerms*c.Team}
	grid := c.groups(m.M)
	if m.Trans {
		s.Long = m.K > exactTerms*c.Teams
		grid = kernel.GridFor(m.M, c.Team)
	}
	var p planner
	p.stage(matVecs.of(s, q.epilogue), grid, matVecParams{uint32(m.M), uint32(m.K)}, append(q.inputs(), q.outputs()...)...)
	return p.done(name)
}
