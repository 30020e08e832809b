//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// matVecOf has the properties that decide the schedule of a product of a matrix and a vector: the
// matrix has M rows and K columns, and its memory holds the transpose if Trans is set.
type matVecOf struct {
	M, K  int
	Trans bool
}

// matVecSchedule is the schedule of such a product. A lane group computes Rows rows of the matrix,
// and a lane reads Ahead runs of each row before it multiplies. If Trans is set, neighbouring lanes
// compute neighbouring rows instead, and the lane groups of a workgroup share the terms.
type matVecSchedule struct {
	groupLayout
	Rows, Ahead int
}

var matVecSchedules = table[matVecOf, matVecSchedule]{
	{"row-subgroups", func(m matVecOf, t *Target) bool { return !m.Trans && m.K > 2048 && m.M < busyLaneGroups && t.Subgroups }, matVecSchedule{groupLayout{GroupLanes: 256, Groups: 1, Subgroups: true}, 1, 4}},
	{"row", func(m matVecOf, _ *Target) bool { return !m.Trans && m.K > 2048 && m.M < busyLaneGroups }, matVecSchedule{groupLayout{GroupLanes: 256, Groups: 1}, 1, 4}},
	{"short-rows", func(m matVecOf, _ *Target) bool { return !m.Trans && m.K <= 256 }, matVecSchedule{groupLayout{GroupLanes: 8, Groups: 32}, 1, 2}},
	{"two-rows", func(m matVecOf, _ *Target) bool { return !m.Trans && m.M >= 2*busyLaneGroups }, matVecSchedule{groupLayout{GroupLanes: 32, Groups: 8}, 2, 4}},
	{"team", func(m matVecOf, _ *Target) bool { return !m.Trans }, matVecSchedule{groupLayout{GroupLanes: 32, Groups: 4}, 1, 4}},
	{"columns", func(m matVecOf, _ *Target) bool { return m.Trans }, matVecSchedule{groupLayout{GroupLanes: 32, Groups: 8}, 1, 4}},
}

// busyLaneGroups and busyGroups are the numbers of lane groups of 32 lanes, and of workgroups of
// 256 lanes, that reach the full memory bandwidth of a large device.
const (
	busyLaneGroups = 4096
	busyGroups     = 1024
)

type matVecSpec struct {
	matVecSchedule
	Type  op.DType
	Trans bool
	Run   int  // elements of one load
	Part  bool // the kernel writes sums of parts of the terms
}

// matVecParams are the parameters: each sum has Parts parts, and each part has Each runs of terms.
type matVecParams struct{ M, K, Parts, Each uint32 }

var matVecs = maker[matVecParams, matVecSpec]{name: "matvec", build: func(b *kernel.Builder, p *matVecParams, s matVecSpec, e *epilogue) {
	if s.Trans {
		columnsTimesVector(b, p, s, e)
	} else {
		rowsTimesVector(b, p, s, e)
	}
}}

// partial declares the result, or the sums of parts if Part is set.
func (s matVecSpec) partial(b *kernel.Builder, e *epilogue) func(i kernel.U32, v kernel.Dynamic) {
	if s.Part {
		return outputValue(b, "parts", op.F32).set
	}
	return e.result(b, s.Type)
}

func rowsTimesVector(b *kernel.Builder, p *matVecParams, s matVecSpec, e *epilogue) {
	u := func(v int) kernel.U32 { return kernel.U(uint32(v)) }
	t := newLaneGroup(b, s.groupLayout)
	a, x := inputRuns(b, "a", s.Type, s.Run), inputRuns(b, "x", s.Type, s.Run)
	put := s.partial(b, e)
	m, runs := b.U32(&p.M), b.U32(&p.K).Div(u(s.Run))
	blocks := m.Add(u(s.Rows - 1)).Div(u(s.Rows))
	part, first := t.number.Div(blocks), t.number.Mod(blocks).Mul(u(s.Rows))
	from := part.Mul(b.U32(&p.Each)).Min(runs)
	to := from.Add(b.U32(&p.Each)).Min(runs)
	rows := make([]kernel.U32, s.Rows)
	sums := make([][]kernel.Var[kernel.F32], s.Rows)
	for i := range rows {
		rows[i] = first.Add(u(i)).Min(m.Sub(u(1))).Mul(runs)
		sums[i] = kernel.NewVars(b, "sum", min(s.Run, 4), kernel.F(0))
	}
	add := func(n int, at kernel.U32) {
		xs, as := make([][]kernel.F32, n), make([][][]kernel.F32, n)
		for k := range n {
			j := at.Add(u(k * s.GroupLanes))
			xs[k] = x(j)
			for _, row := range rows {
				as[k] = append(as[k], a(row.Add(j)))
			}
		}
		for k := range n {
			for i := range rows {
				for c := range s.Run {
					v := &sums[i][c%4]
					v.Set(as[k][i][c].MulAdd(xs[k][c], v.Get()))
				}
			}
		}
	}
	whole := to.Sub(from).Div(u(s.GroupLanes * s.Ahead)).Mul(u(s.GroupLanes * s.Ahead)).Add(from)
	b.ForStep(from.Add(t.lane), whole, u(s.GroupLanes*s.Ahead), func(at kernel.U32) { add(s.Ahead, at) })
	b.ForStep(whole.Add(t.lane), to, u(s.GroupLanes), func(at kernel.U32) { add(1, at) })
	for i := range rows {
		total := sums[i][0].Get()
		for c := 1; c < len(sums[i]); c++ {
			total = total.Add(sums[i][c].Get())
		}
		total = t.sum(total)
		row := first.Add(u(i))
		b.If(t.lane.Eq(u(0)).And(row.Lt(m)).And(part.Lt(b.U32(&p.Parts))), func() { put(part.Mul(m).Add(row), kernel.Dyn(total)) })
	}
}

// columnsTimesVector multiplies a transposed matrix by a vector. A lane computes Run neighbouring
// rows of the result.
func columnsTimesVector(b *kernel.Builder, p *matVecParams, s matVecSpec, e *epilogue) {
	u := func(v int) kernel.U32 { return kernel.U(uint32(v)) }
	b.LocalSize(s.GroupLanes, s.Groups, 1)
	a, x := inputRuns(b, "a", s.Type, s.Run), input(b, "x", s.Type)
	put := s.partial(b, e)
	shared := kernel.Shared[kernel.F32](b, "sums", s.lanes()*s.Run)
	m, k := b.U32(&p.M), b.U32(&p.K)
	runs := m.Div(u(s.Run))
	blocks := runs.Add(u(s.GroupLanes - 1)).Div(u(s.GroupLanes))
	part, block := b.Group().Div(blocks), b.Group().Mod(blocks)
	first := block.Mul(u(s.GroupLanes)).Add(b.LocalX())
	run := first.Min(runs.Sub(u(1)))
	from := part.Mul(b.U32(&p.Each)).Min(k)
	to := from.Add(b.U32(&p.Each)).Min(k)
	sums := kernel.NewVars(b, "sum", s.Run, kernel.F(0))
	add := func(n int, at kernel.U32) {
		as, xs := make([][]kernel.F32, n), make([]kernel.F32, n)
		for i := range n {
			j := at.Add(u(i * s.Groups))
			as[i], xs[i] = a(j.Mul(runs).Add(run)), x(j)
		}
		for i := range n {
			for c := range s.Run {
				sums[c].Set(as[i][c].MulAdd(xs[i], sums[c].Get()))
			}
		}
	}
	whole := to.Sub(from).Div(u(s.Groups * s.Ahead)).Mul(u(s.Groups * s.Ahead)).Add(from)
	b.ForStep(from.Add(b.LocalY()), whole, u(s.Groups*s.Ahead), func(at kernel.U32) { add(s.Ahead, at) })
	b.ForStep(whole.Add(b.LocalY()), to, u(s.Groups), func(at kernel.U32) { add(1, at) })
	for c := range s.Run {
		shared.Set(b.Lane().Add(u(c*s.lanes())), sums[c].Get())
	}
	b.Barrier()
	mine := b.LocalY().Eq(u(0)).And(first.Lt(runs)).And(part.Lt(b.U32(&p.Parts)))
	b.If(mine, func() {
		for c := range s.Run {
			total := shared.At(b.LocalX().Add(u(c * s.lanes())))
			for t := 1; t < s.Groups; t++ {
				total = total.Add(shared.At(b.LocalX().Add(u(c*s.lanes() + t*s.GroupLanes))))
			}
			put(part.Mul(m).Add(first.Mul(u(s.Run))).Add(u(c)), kernel.Dyn(total))
		}
	})
}

// inputRuns declares a floating-point operand that is read in runs of neighbouring elements: 1, 4,
// or 8 half floats. The operand's extent is a multiple of the run.
func inputRuns(b *kernel.Builder, name string, t op.DType, run int) func(i kernel.U32) []kernel.F32 {
	spread := func(v kernel.Vec4F) []kernel.F32 { return []kernel.F32{v.At(0), v.At(1), v.At(2), v.At(3)} }
	switch {
	case run == 1:
		at := input(b, name, t)
		return func(i kernel.U32) []kernel.F32 { return []kernel.F32{at(i)} }
	case run == 8:
		at := kernel.Input[kernel.Vec4U](b, name).At
		return func(i kernel.U32) []kernel.F32 {
			var fs []kernel.F32
			v := at(i)
			for c := range 4 {
				h := v.At(c).UnpackHalf()
				fs = append(fs, h.At(0), h.At(1))
			}
			return fs
		}
	case t == op.F16:
		at := kernel.Input[kernel.Vec4H](b, name).At
		return func(i kernel.U32) []kernel.F32 { return spread(at(i).Vec4F()) }
	}
	at := kernel.Input[kernel.Vec4F](b, name).At
	return func(i kernel.U32) []kernel.F32 { return spread(at(i)) }
}

// runOf returns the longest run for arrays of type t whose extents are multiples of n.
func runOf(t op.DType, n int) int {
	switch {
	case n%8 == 0 && t == op.F16:
		return 8
	case n%4 == 0:
		return 4
	}
	return 1
}

func planMatVec(q *request) (*Plan, error) {
	m := matVecOf{Trans: op.MatVecOptsOf(&q.Attrs).Trans}
	m.M, m.K = q.In[0].Shape[0], q.In[0].Shape[1]
	if m.Trans {
		m.M, m.K = m.K, m.M
	}
	w, name, err := matVecSchedules.choose(q, m)
	if err != nil {
		return nil, err
	}
	return launchMatVec(q, m, w, name)
}

// launchMatVec plans a product with the given schedule. It divides sums into parts if there are too
// few rows to keep a device busy, or if a lane would add more than exactTerms terms.
func launchMatVec(q *request, m matVecOf, w matVecSchedule, name string) (*Plan, error) {
	s := matVecSpec{matVecSchedule: w, Type: q.In[0].Type, Trans: m.Trans}
	ceil := func(n, by int) int { return (n + by - 1) / by }
	var blocks, parts, runs, limit int // limit: maximum number of runs in a part, for all lanes that add it
	if m.Trans {
		s.Run = runOf(s.Type, m.M)
		runs, limit = m.K, exactTerms*w.Groups
		blocks = ceil(m.M, s.Run*w.GroupLanes)
		parts = min(busyGroups/blocks, m.K/(w.Groups*w.Ahead*4))
	} else {
		s.Run = runOf(s.Type, m.K)
		runs, limit = m.K/s.Run, exactTerms*w.GroupLanes/max(1, s.Run/4)
		blocks = ceil(m.M, w.Rows)
		parts = min(busyLaneGroups*32/w.GroupLanes/blocks, runs/(w.GroupLanes*w.Ahead*4))
	}
	each := max(1, min(ceil(runs, max(1, parts)), limit))
	parts = max(1, ceil(runs, each))
	s.Part = parts > 1
	grid := kernel.GridOf(blocks * parts)
	if !m.Trans {
		grid = w.groupLayout.groups(blocks * parts)
	}
	params := matVecParams{uint32(m.M), uint32(m.K), uint32(parts), uint32(each)}
	var p planner
	if !s.Part {
		p.stage(matVecs.of(s, q.epilogue), grid, params, append(q.inputs(), q.outputs()...)...)
		return p.done(name)
	}
	sums := p.scratch(parts * m.M)
	p.stage(matVecs.of(s, nil), grid, params, append(q.inputs(), sums)...)
	p.addParts(q, sums, 0, m.M, parts, 0)
	return p.done(name)
}
