//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// matMulQOf has the properties that decide the schedule of a product with a quantised matrix.
type matMulQOf struct {
	matMulOf
	Blocks op.DType
}

// words reports whether the product can be computed with blocks that are read by words: it has at
// most rows rows, a lane group multiplies of rows of the quantised matrix together, and no lane
// adds more than exactTerms units.
func (m matMulQOf) words(rows, of int) bool {
	f, ok := wordFormatOf(m.Blocks.Block())
	return ok && m.M <= rows && of <= f.rows && m.K > 0 && m.K/m.Blocks.Block().Elements()*f.units <= exactTerms*32
}

// matMulQSchedule is the schedule of a product with a quantised matrix: by panels, by tiles, or
// with a lane group for each row of the quantised matrix, which is multiplied by all rows of a.
type matMulQSchedule struct {
	matMulSchedule
	groupLayout
	rows  int // rows of a that a lane group multiplies
	of    int // rows of the quantised matrix that a lane group multiplies, by words; 0 for products by elements
	ahead int // units that a lane reads before it multiplies
}

// can reports whether the schedule can compute the product, at any speed.
func (w matMulQSchedule) can(m matMulQOf, d *Target) bool {
	switch {
	case w.of > 0:
		return m.words(w.rows, 1)
	case w.rows > 0:
		return m.M <= w.rows
	}
	return w.matMulSchedule.can(m.matMulOf, d)
}

var matMulQSchedules = table[matMulQOf, matMulQSchedule]{
	{"words-four-rows", func(m matMulQOf, _ *Target) bool { return m.words(1, 4) && m.N >= 4*busyLaneGroups }, matMulQSchedule{groupLayout: groupLayout{GroupLanes: 32, Groups: 4}, rows: 1, of: 4, ahead: 1}},
	{"words-two-rows", func(m matMulQOf, _ *Target) bool { return m.words(1, 2) && m.N >= busyLaneGroups }, matMulQSchedule{groupLayout: groupLayout{GroupLanes: 32, Groups: 4}, rows: 1, of: 2, ahead: 1}},
	{"words", func(m matMulQOf, _ *Target) bool { return m.words(1, 1) }, matMulQSchedule{groupLayout: groupLayout{GroupLanes: 32, Groups: 4}, rows: 1, of: 1, ahead: 2}},
	{"words-4", func(m matMulQOf, _ *Target) bool { return m.words(4, 1) }, matMulQSchedule{groupLayout: groupLayout{GroupLanes: 32, Groups: 4}, rows: 4, of: 2, ahead: 1}},
	{"words-8", func(m matMulQOf, _ *Target) bool { return m.words(8, 1) }, matMulQSchedule{groupLayout: groupLayout{GroupLanes: 32, Groups: 4}, rows: 8, of: 2, ahead: 1}},
	{"words-16", func(m matMulQOf, _ *Target) bool { return m.words(16, 1) }, matMulQSchedule{groupLayout: groupLayout{GroupLanes: 32, Groups: 4}, rows: 16, of: 2, ahead: 1}},
	{"row", func(m matMulQOf, _ *Target) bool { return m.M == 1 }, matMulQSchedule{groupLayout: groupLayout{GroupLanes: 32, Groups: 4}, rows: 1}},
	{"rows", func(m matMulQOf, _ *Target) bool { return m.M <= 4 }, matMulQSchedule{groupLayout: groupLayout{GroupLanes: 32, Groups: 4}, rows: 4}},
	{"panels128x128", func(m matMulQOf, t *Target) bool { return m.panels(panel128x128, t) }, matMulQSchedule{matMulSchedule: matMulSchedule{panel: panel128x128}}},
	{"panels64x64", func(m matMulQOf, t *Target) bool { return m.panels(panel64x64, t) }, matMulQSchedule{matMulSchedule: matMulSchedule{panel: panel64x64}}},
	{"panels32x64", func(m matMulQOf, t *Target) bool { return m.panels(panel32x64, t) }, matMulQSchedule{matMulSchedule: matMulSchedule{panel: panel32x64}}},
	{"32x64", func(m matMulQOf, t *Target) bool { return m.M > 8 && t.Lanes >= 128 }, matMulQSchedule{matMulSchedule: matMulSchedule{matMulTile: matMulTile{32, 64, 16, 4, 1}}}},
	{"8x32", func(matMulQOf, *Target) bool { return true }, matMulQSchedule{matMulSchedule: matMulSchedule{matMulTile: matMulTile{8, 32, 32, 1, 1}}}},
}

type matMulQSpec struct {
	matMulQSchedule
	Type, Blocks op.DType
	Bias, Long   bool
}

type matMulQParams struct {
	M, K, N uint32
	Across  uint32 // number of tiles
}

var matMulQs = maker[matMulQParams, matMulQSpec]{name: "matmul_q", build: func(b *kernel.Builder, p *matMulQParams, s matMulQSpec, e *epilogue) {
	m, k, n := b.U32(&p.M), b.U32(&p.K), b.U32(&p.N)
	switch {
	case s.of > 0:
		rowsTimesWords(b, s, e, m, k, n)
		return
	case s.rows > 0:
		rowsTimesBlocks(b, s, e, m, k, n)
		return
	}
	lx, ly := s.matMulTile.lanes()
	b.LocalSize(lx, ly, 1)
	ta := newTile(b, "a", s.Type, s.Rows, s.Depth, true, false)
	w := inputBlocks(b, "w", s.Blocks)
	bias := optional(b, "bias", s.Type, s.Bias)
	put := e.result(b, s.Type)
	tb := newGathered(b, "w", s.Cols, s.Depth, true, func(line, term kernel.U32) kernel.F32 { return w.element(line.Mul(k).Add(term)) })
	across := b.U32(&p.Across)
	row := b.Group().Div(across).Mul(kernel.U(uint32(s.Rows)))
	col := b.Group().Mod(across).Mul(kernel.U(uint32(s.Cols)))
	ta.start(kernel.U(0), row, m, k)
	tb.start(kernel.U(0), col, n, k)
	sums := s.multiply(b, ta, tb, k, s.Long)
	s.each(b, sums, row, col, m, n, func(r, c kernel.U32, v kernel.F32) { put(r.Mul(n).Add(c), kernel.Dyn(bias(c, v))) })
}}

// rowsTimesBlocks gives each lane group a row of w. The lane group decodes each element once and
// uses it for all rows of a.
func rowsTimesBlocks(b *kernel.Builder, s matMulQSpec, e *epilogue, m, k, n kernel.U32) {
	t := newLaneGroup(b, s.groupLayout)
	a := input(b, "a", s.Type)
	w := inputBlocks(b, "w", s.Blocks)
	bias := optional(b, "bias", s.Type, s.Bias)
	put := e.result(b, s.Type)
	row := t.number.Min(n.Sub(kernel.U(1))) // lane groups beyond the end compute the last row again
	sums := addUp(b, t.lane, k, s.GroupLanes, s.rows, s.Long, func(j kernel.U32) []kernel.F32 {
		x := w.element(row.Mul(k).Add(j))
		terms := make([]kernel.F32, s.rows)
		for i := range terms {
			at := kernel.U(uint32(i))
			if i > 0 {
				at = at.Min(m.Sub(kernel.U(1)))
			}
			terms[i] = a(at.Mul(k).Add(j)).Mul(x)
		}
		return terms
	})
	for i := range sums {
		total := t.sum(sums[i])
		b.If(t.lane.Eq(kernel.U(0)).And(t.number.Lt(n)).And(kernel.U(uint32(i)).Lt(m)), func() {
			put(kernel.U(uint32(i)).Mul(n).Add(row), kernel.Dyn(bias(row, total)))
		})
	}
}

// optional declares a bias, if there is one, and returns a function that adds it.
func optional(b *kernel.Builder, name string, t op.DType, is bool) func(i kernel.U32, v kernel.F32) kernel.F32 {
	if !is {
		return func(_ kernel.U32, v kernel.F32) kernel.F32 { return v }
	}
	x := input(b, name, t)
	return func(i kernel.U32, v kernel.F32) kernel.F32 { return v.Add(x(i)) }
}

// addUp returns sums of terms(j) for j = from, from+step, ... below to. If long is set, it adds
// them in parts of at most exactTerms terms.
func addUp(b *kernel.Builder, from, to kernel.U32, step, sums int, long bool, terms func(j kernel.U32) []kernel.F32) []kernel.F32 {
	total := kernel.NewVars(b, "total", sums, kernel.F(0))
	run := func(to []kernel.Var[kernel.F32], from, end kernel.U32) {
		b.ForStep(from, end, kernel.U(uint32(step)), func(j kernel.U32) {
			for i, x := range terms(j) {
				to[i].Set(to[i].Get().Add(x))
			}
		})
	}
	if !long {
		run(total, from, to)
	} else {
		part := kernel.U(uint32(exactTerms * step))
		b.ForStep(kernel.U(0), to, part, func(first kernel.U32) {
			sum := kernel.NewVars(b, "part", sums, kernel.F(0))
			run(sum, first.Add(from), to.Min(first.Add(part)))
			for i := range sum {
				total[i].Set(total[i].Get().Add(sum[i].Get()))
			}
		})
	}
	out := make([]kernel.F32, sums)
	for i := range out {
		out[i] = total[i].Get()
	}
	return out
}

func planMatMulQ(q *request) (*Plan, error) {
	pr, err := op.MatMulQOf([]op.Shape{q.In[0].Shape, q.In[1].Shape})
	if err != nil {
		return nil, err
	}
	schedule, name, err := matMulQSchedules.choose(q, matMulQOf{matMulOf{pr}, q.In[1].Type})
	if err != nil {
		return nil, err
	}
	return launchMatMulQ(q, pr, schedule, name)
}

// launchMatMulQ plans a product with the given schedule.
func launchMatMulQ(q *request, pr op.Product, schedule matMulQSchedule, name string) (*Plan, error) {
	if schedule.panel.Rows > 0 {
		return launchPanels(q, pr, op.MatMulOpts{TransB: true}, schedule.panel, name)
	}
	s := matMulQSpec{matMulQSchedule: schedule, Type: q.In[0].Type, Blocks: q.In[1].Type,
		Bias: len(q.In) > 2 && q.In[2].Shape != nil, Long: schedule.of == 0 && pr.K > exactTerms*max(1, schedule.GroupLanes)}
	params := matMulQParams{M: uint32(pr.M), K: uint32(pr.K), N: uint32(pr.N)}
	var grid kernel.Size
	if schedule.rows > 0 {
		grid = schedule.groupLayout.groups((pr.N-1)/max(1, schedule.of) + 1)
	} else {
		across := (pr.N-1)/schedule.Cols + 1
		params.Across = uint32(across)
		grid = kernel.GridOf(across * ((pr.M-1)/schedule.Rows + 1))
	}
	var p planner
	p.stage(matMulQs.of(s, q.epilogue), grid, params, append(p.withGrid(q, 1), q.outputs()...)...)
	return p.done(name)
}
