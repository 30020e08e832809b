package lib

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// A panelTile is how a large product is cut. A workgroup makes Rows × Cols of the
// result and walks the terms in steps of Depth. A lane has Own × Wide of the
// result, in quads of four by four, and groups of 32 lanes stand LaneRows by
// 32/LaneRows.
//
// The next step comes from memory into registers while a step is multiplied.
// Workgroup memory holds Stages steps: with two of them one barrier a step is enough.
type panelTile struct {
	Rows, Cols, Depth int
	Own, Wide         int
	LaneRows          int
	Stages            int
	Split             bool // half of the lanes bring one operand, half the other
}

func (t panelTile) lanes() int { return t.Rows * t.Cols / (t.Own * t.Wide) }

// shared is the most bytes of workgroup memory that a product takes.
func (t panelTile) shared() int { return t.Stages * t.Depth * (t.Rows + t.Cols + 8) * 4 }

// The tiles in use.
var (
	panel128x128 = panelTile{128, 128, 16, 8, 8, 4, 2, true}
	panel64x64   = panelTile{64, 64, 8, 8, 8, 4, 2, true}
)

// crews returns the first lanes of those that bring the operands, and how many
// bring each.
func (t panelTile) crews() (a, b, each int) {
	if t.Split {
		return 0, t.lanes() / 2, t.lanes() / 2
	}
	return 0, 0, t.lanes()
}

// panelSums are the sums of a lane: quad rows by quad columns of the tile, each
// row of a quad a vector.
type panelSums struct {
	panelTile
	b        *kernel.Builder
	rows     *panel
	cols     *panel
	row, col kernel.U32 // the first quads of the lane
	v        [][]kernel.Var[kernel.Vec4F]
}

// panelSteps are the terms of a product: how many steps, and the terms of the
// first; the others are whole.
type panelSteps struct{ steps, first kernel.U32 }

// multiply returns the sums of the products of the lines of a and b, which have
// been started.
func (t panelTile) multiply(b *kernel.Builder, pa, pb *panel, p panelSteps) *panelSums {
	u := func(v int) kernel.U32 { return kernel.U(uint32(v)) }
	sa := kernel.Shared[kernel.Vec4F](b, "panel_a", pa.size()*t.Stages)
	sb := kernel.Shared[kernel.Vec4F](b, "panel_b", pb.size()*t.Stages)

	lane := b.Lane()
	laneCols := 32 / t.LaneRows
	laneRow, laneCol := lanePlace(lane.And(u(31)), t.LaneRows)
	across := t.Cols / (laneCols * t.Wide)
	s := &panelSums{panelTile: t, b: b, rows: pa, cols: pb,
		row: lane.Shr(u(5)).Div(u(across)).Mul(u(t.LaneRows * t.Own / 4)).Add(laneRow),
		col: lane.Shr(u(5)).Mod(u(across)).Mul(u(laneCols * t.Wide / 4)).Add(laneCol)}
	for range t.Own {
		s.v = append(s.v, kernel.NewVars(b, "sum", t.Wide/4, kernel.Vec4F{}))
	}
	r := t.newReader(b, pa, pb, p.first)
	r.load(&p.first)
	r.advance(p.first)
	r.store(sa, sb, u(0))
	b.Barrier()
	stage := kernel.NewVar(b, "stage", u(0))
	now := func() kernel.U32 {
		if t.Stages == 1 {
			return u(0)
		}
		return stage.Get()
	}
	b.For(u(0), p.steps, func(i kernel.U32) {
		b.If(i.Add(u(1)).Lt(p.steps), func() { r.load(nil) })
		r.advance(u(t.Depth))
		s.step(sa, sb, now())
		if t.Stages == 1 {
			b.Barrier()
		} else {
			stage.Set(u(1).Sub(stage.Get()))
		}
		// After the last step this keeps what is there already.
		r.store(sa, sb, now())
		b.Barrier()
	})
	return s
}

// A panelReader is how a lane brings two panels, or one of them: then the places
// of both have the same registers.
type panelReader struct {
	panelTile
	b              *kernel.Builder
	pa, pb         *panel
	toA, toB       staged
	placeA, placeB []kernel.Var[kernel.U32]
	slotA, slotB   kernel.U32
	first          kernel.Bool // the lane brings a (Split)
}

func (t panelTile) newReader(b *kernel.Builder, pa, pb *panel, first kernel.U32) *panelReader {
	r := &panelReader{panelTile: t, b: b, pa: pa, pb: pb, slotA: pa.slot, slotB: pb.slot}
	vars := func(name string, at []kernel.U32) []kernel.Var[kernel.U32] {
		vs := make([]kernel.Var[kernel.U32], len(at))
		for i := range vs {
			vs[i] = kernel.NewVar(b, name, at[i])
		}
		return vs
	}
	if !t.Split {
		r.toA, r.toB = newStaged(b, "next_a", pa.registers(), pa.half), newStaged(b, "next_b", pb.registers(), pb.half)
		r.placeA, r.placeB = vars("at_a", pa.from), vars("at_b", pb.from)
		return r
	}
	r.first = b.Lane().Lt(kernel.U(uint32(t.lanes() / 2)))
	r.slotA = kernel.Select(r.first, pa.slot, pb.slot)
	r.slotB = r.slotA
	if pa.half == pb.half {
		r.toA = newStaged(b, "next", max(pa.registers(), pb.registers()), pa.half)
		r.toB = r.toA
	} else {
		r.toA, r.toB = newStaged(b, "next_a", pa.registers(), pa.half), newStaged(b, "next_b", pb.registers(), pb.half)
	}
	at := make([]kernel.U32, max(len(pa.from), len(pb.from)))
	for i := range at {
		switch {
		case i >= len(pb.from):
			at[i] = pa.from[i]
		case i >= len(pa.from):
			at[i] = pb.from[i]
		default:
			at[i] = kernel.Select(r.first, pa.from[i], pb.from[i])
		}
	}
	r.placeA = vars("at", at)
	r.placeB = r.placeA
	return r
}

// either runs fa on the lanes that bring a, and fb on those that bring b.
func (r *panelReader) either(fa, fb func()) {
	if r.Split {
		r.b.If(r.first, fa).Else(fb)
		return
	}
	fa()
	fb()
}

// load reads a step: all of it, or the terms before have.
func (r *panelReader) load(have *kernel.U32) {
	get := func(vs []kernel.Var[kernel.U32]) []kernel.U32 {
		at := make([]kernel.U32, len(vs))
		for i := range vs {
			at[i] = vs[i].Get()
		}
		return at
	}
	r.either(func() { r.pa.load(r.toA, get(r.placeA), have) }, func() { r.pb.load(r.toB, get(r.placeB), have) })
}

// advance goes on to the next step, so many terms ahead.
func (r *panelReader) advance(terms kernel.U32) {
	move := func(vs []kernel.Var[kernel.U32], by kernel.U32) {
		for _, v := range vs {
			v.Set(v.Get().Add(by))
		}
	}
	if r.Split {
		move(r.placeA, kernel.Select(r.first, r.pa.ahead(terms), r.pb.ahead(terms)))
		return
	}
	move(r.placeA, r.pa.ahead(terms))
	move(r.placeB, r.pb.ahead(terms))
}

// store puts what was read into workgroup memory.
func (r *panelReader) store(sa, sb kernel.Array[kernel.Vec4F], stage kernel.U32) {
	r.either(func() { r.pa.store(sa, stage.Mul(kernel.U(uint32(r.pa.size()))).Add(r.slotA), r.toA) },
		func() { r.pb.store(sb, stage.Mul(kernel.U(uint32(r.pb.size()))).Add(r.slotB), r.toB) })
}

// step adds the products of one step, which is in workgroup memory.
func (s *panelSums) step(sa, sb kernel.Array[kernel.Vec4F], stage kernel.U32) {
	u := func(v int) kernel.U32 { return kernel.U(uint32(v)) }
	fromA := stage.Mul(u(s.rows.size())).Add(s.row)
	fromB := stage.Mul(u(s.cols.size())).Add(s.col)
	as, bs := make([]kernel.Vec4F, s.Own/4), make([]kernel.Vec4F, s.Wide/4)
	for d := range s.Depth {
		for i := range as {
			as[i] = sa.At(fromA.Add(u(d*s.rows.width() + i*s.LaneRows)))
		}
		for j := range bs {
			bs[j] = sb.At(fromB.Add(u(d*s.cols.width() + j*32/s.LaneRows)))
		}
		for i := range s.v {
			x := as[i/4].At(i % 4).Splat4()
			for j := range bs {
				s.v[i][j].Set(x.Fma(bs[j], s.v[i][j].Get()))
			}
		}
	}
}

// panelAside is where sums are between the launches of a product: a float32
// adds up no more than exactTerms one after the other, so that the terms of a long sum are
// divided among launches, each of which adds what those before it have put aside.
type panelAside struct {
	at        kernel.Buffer[kernel.Vec4F]
	add, keep kernel.Bool // there is something; the sums are not complete
}

// then adds what is aside, and calls finish where the sums are complete. Without
// an aside they are.
func (s *panelSums) then(aside *panelAside, finish func()) {
	if aside == nil {
		finish()
		return
	}
	u := func(v int) kernel.U32 { return kernel.U(uint32(v)) }
	place := s.b.Group().Mul(u(s.Rows * s.Cols / 4)).Add(s.b.Lane())
	each := func(f func(i kernel.U32, v kernel.Var[kernel.Vec4F])) {
		for i := range s.v {
			for j := range s.v[i] {
				f(place.Add(u((i*len(s.v[i])+j)*s.lanes())), s.v[i][j])
			}
		}
	}
	s.b.If(aside.add, func() {
		each(func(i kernel.U32, v kernel.Var[kernel.Vec4F]) { v.Set(v.Get().Add(aside.at.At(i))) })
	})
	s.b.If(aside.keep, func() {
		each(func(i kernel.U32, v kernel.Var[kernel.Vec4F]) { aside.at.Set(i, v.Get()) })
	}).Else(finish)
}

// each calls put for every sum within rows × cols, counted from the tile's first
// row and column, with what at returns for its column; or put4, if not nil, for
// every vector: then cols is a multiple of four and the lines of a quad of columns are neighbours.
func (s *panelSums) each(rows, cols kernel.U32, at func(c kernel.U32) kernel.U32, put func(r, c, at kernel.U32, v kernel.F32), put4 func(r, c, at kernel.U32, v kernel.Vec4F)) {
	u := func(v int) kernel.U32 { return kernel.U(uint32(v)) }
	lines, step := make([]kernel.U32, s.Wide), 1
	if put4 != nil {
		step = 4
	}
	places := make([]kernel.U32, s.Wide)
	for j := 0; j < s.Wide; j += step {
		lines[j] = s.cols.place(s.col.Add(u(j/4*32/s.LaneRows)), j%4)
		places[j] = at(lines[j])
	}
	for i := range s.v {
		r := s.rows.place(s.row.Add(u(i/4*s.LaneRows)), i%4)
		s.b.If(r.Lt(rows), func() {
			for j := 0; j < s.Wide; j += step {
				v := s.v[i][j/4].Get()
				s.b.If(lines[j].Lt(cols), func() {
					if put4 != nil {
						put4(r, lines[j], places[j], v)
					} else {
						put(r, lines[j], places[j], v.At(j%4))
					}
				})
			}
		})
	}
}

// lanePlace returns the row and the column of a lane in a group of 32, of so many
// rows. GPUs serve 16 bytes a lane in quarters of such a group, and quarters that
// want the same at once: neighbouring lanes therefore share a column.
func lanePlace(lane kernel.U32, rows int) (row, col kernel.U32) {
	u := func(v uint32) kernel.U32 { return kernel.U(v) }
	switch rows {
	case 4:
		return lane.And(u(1)).Or(lane.Shr(u(3)).And(u(2))), lane.Shr(u(1)).And(u(7))
	case 8:
		return lane.Shr(u(1)).And(u(7)), lane.And(u(1)).Or(lane.Shr(u(3)).And(u(2)))
	}
	return lane.Div(u(uint32(32 / rows))), lane.Mod(u(uint32(32 / rows)))
}

// tilesOf is how the tiles of a result lie in the grid: bands of rows of tiles,
// column by column, so that workgroups that run together share what they read.
type tilesOf struct{ across, down, band kernel.U32 }

// place returns the row and column of tiles of a tile.
func (t tilesOf) place(number kernel.U32) (row, col kernel.U32) {
	whole := t.band.Mul(t.across)
	top := number.Div(whole).Mul(t.band)
	in := number.Mod(whole)
	height := t.down.Sub(top).Min(t.band)
	return top.Add(in.Mod(height)), in.Div(height)
}

// mostBand is the most rows of tiles in a band.
const mostBand = 8

// panelSpec is a product of matrices by panels.
type panelSpec struct {
	panelTile
	Type  op.DType
	A, B  panelForm
	WideC bool // rows of the result are vectors of four, and the epilogue takes them
	Bias  bool
	Long  bool // more than exactTerms terms
}

// panelParams are those of a launch, which does a part of the terms.
type panelParams struct {
	Batch, M, N        uint32
	Across, Down, Band uint32 // tiles
	PitchA, PitchB     uint32 // from one row in memory to the next
	StrideA, StrideB   uint32 // from one matrix to the next
	FromA, FromB       uint32 // places of the first term
	Steps, First       uint32
	Add, Keep          uint32 // of panelAside
}

var panelMuls = newMaker("matmul_panels", func(b *kernel.Builder, p *panelParams, s panelSpec, e *epilogue) {
	b.LocalSize(s.lanes(), 1, 1)
	firstA, firstB, crew := s.crews()
	pa := newPanel(b, "a", s.Type, s.A, s.Rows, s.Depth, firstA, crew)
	pb := newPanel(b, "b", s.Type, s.B, s.Cols, s.Depth, firstB, crew)
	bias := optional(b, "bias", s.Type, s.Bias)
	var aside *panelAside
	if s.Long {
		aside = &panelAside{kernel.InOut[kernel.Vec4F](b, "aside"), b.U32(&p.Add).Ne(kernel.U(0)), b.U32(&p.Keep).Ne(kernel.U(0))}
	}
	var put, put4 func(i kernel.U32, v kernel.Dynamic)
	if s.WideC {
		put4 = e.result4(b, s.Type)
	} else {
		put = e.result(b, s.Type)
	}

	m, n := b.U32(&p.M), b.U32(&p.N)
	tiles := tilesOf{b.U32(&p.Across), b.U32(&p.Down), b.U32(&p.Band)}
	pair, number := b.Group().Div(tiles.across.Mul(tiles.down)), b.Group().Mod(tiles.across.Mul(tiles.down))
	b.If(pair.Lt(b.U32(&p.Batch)), func() { // the grid may be folded
		row, col := tiles.place(number)
		row, col = row.Mul(kernel.U(uint32(s.Rows))), col.Mul(kernel.U(uint32(s.Cols)))
		pa.start(pair.Mul(b.U32(&p.StrideA)).Add(b.U32(&p.FromA)), row, m, b.U32(&p.PitchA))
		pb.start(pair.Mul(b.U32(&p.StrideB)).Add(b.U32(&p.FromB)), col, n, b.U32(&p.PitchB))
		sums := s.multiply(b, pa, pb, panelSteps{b.U32(&p.Steps), b.U32(&p.First)})
		first := pair.Mul(m).Add(row)
		place := func(r, at kernel.U32) kernel.U32 { return first.Add(r).Mul(n).Add(at) }
		var four func(r, c, at kernel.U32, v kernel.Vec4F)
		if s.WideC {
			four = func(r, _, at kernel.U32, v kernel.Vec4F) {
				if s.Bias {
					var x [4]kernel.F32
					for q := range x {
						x[q] = bias(at.Add(kernel.U(uint32(q))), v.At(q))
					}
					v = b.Vec4F(x[0], x[1], x[2], x[3])
				}
				put4(place(r, at).Shr(kernel.U(2)), kernel.Dyn(v))
			}
		}
		sums.then(aside, func() {
			sums.each(m.Sub(row), n.Sub(col), col.Add, func(r, _, at kernel.U32, v kernel.F32) {
				put(place(r, at), kernel.Dyn(bias(at, v)))
			}, four)
		})
	})
})

// launchPanels makes the plan with panels of one size. Products with one matrix
// on the right are one, of the rows of all, where these stand below each other.
func launchPanels(q *request, pr op.Product, t panelTile, name string) (*Plan, error) {
	o := op.MatMulOptsOf(&q.Attrs)
	if pr.SharedB && !o.TransA {
		pr.M, pr.Batch = pr.Batch*pr.M, 1
	}
	u := func(v int) uint32 { return uint32(v) }
	s := panelSpec{panelTile: t, Type: q.In[0].Type, Bias: len(q.In) > 2 && q.In[2].Shape != nil, Long: pr.K > exactTerms}
	pitchA, pitchB := pr.K, pr.N
	aheadA, aheadB := 1, pr.N // from one term to the next
	if o.TransA {
		pitchA, aheadA = pr.M, pr.M
	}
	if o.TransB {
		pitchB, aheadB = pr.K, 1
	}
	s.A, s.B = formOf(!o.TransA, pitchA), formOf(o.TransB, pitchB)
	s.WideC = pr.N%4 == 0 && q.epilogue.vectors(pr.N)
	across, down := (pr.N-1)/t.Cols+1, (pr.M-1)/t.Rows+1
	params := panelParams{Batch: u(pr.Batch), M: u(pr.M), N: u(pr.N), Across: u(across), Down: u(down), Band: u(min(down, mostBand)),
		PitchA: u(pitchA), PitchB: u(pitchB), StrideA: u(pr.M * pr.K), StrideB: u(pr.K * pr.N)}
	if pr.SharedB {
		params.StrideB = 0
	}
	var p planner
	bind := q.inputs()
	if s.Long {
		bind = append(bind, p.scratch(pr.Batch*across*down*t.Rows*t.Cols))
	}
	bind = append(bind, q.outputs()...)
	grid := kernel.GridOf(pr.Batch * across * down)
	t.launches(pr.K, func(from, steps, first int, add, keep uint32) {
		params.FromA, params.FromB = u(from*aheadA), u(from*aheadB)
		params.Steps, params.First, params.Add, params.Keep = u(steps), u(first), add, keep
		p.stage(panelMuls.of(s, q.epilogue), grid, params, bind...)
	})
	return p.done(name)
}

// launches divides k terms among launches: f gets the first term of each, how
// many steps it takes, the terms of its first step, and what panelAside is told.
func (t panelTile) launches(k int, f func(from, steps, first int, add, keep uint32)) {
	n := (k-1)/exactTerms + 1
	steps := (k-1)/t.Depth + 1
	first := k - (steps-1)*t.Depth // terms of the first step of all
	from, done := 0, 0
	for i := range n {
		end := steps * (i + 1) / n
		var add, keep uint32
		if i > 0 {
			add, first = 1, t.Depth
		}
		if i < n-1 {
			keep = 1
		}
		f(from, end-done, first, add, keep)
		from += first + (end-done-1)*t.Depth
		done = end
	}
}
