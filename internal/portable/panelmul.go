//go:build !js || !nowebgpu

package portable

import (
	"slices"

	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// A panelTile is the tile configuration of a large product. A workgroup computes Rows × Cols
// elements of the result and iterates over the terms in steps of Depth. A lane computes Own × Wide
// elements, in quads of four by four, and each group of 32 lanes is arranged as LaneRows by
// 32/LaneRows.
//
// While the lanes multiply one step, they read the next step from memory into registers. Workgroup
// memory holds Stages steps; with two stages, one barrier in each step is enough.
type panelTile struct {
	Rows, Cols, Depth int
	Own, Wide         int
	LaneRows          int
	Stages            int
	Split             bool // half of the lanes load one operand, and half load the other
}

func (t panelTile) lanes() int { return t.Rows * t.Cols / (t.Own * t.Wide) }

// shared is the number of bytes of workgroup memory that a product needs at most.
func (t panelTile) shared() int { return t.Stages * t.Depth * (t.Rows + t.Cols + 8) * 4 }

// The configurations in use.
var (
	panel128x128 = panelTile{128, 128, 16, 8, 8, 4, 2, true}
	panel64x64   = panelTile{64, 64, 16, 8, 8, 4, 2, true}
	panel64x64x8 = panelTile{64, 64, 8, 8, 8, 4, 2, true}
	panel32x64   = panelTile{32, 64, 16, 4, 8, 4, 2, true}
)

// runs reports whether the device has enough lanes and workgroup memory.
func (t panelTile) runs(d *Target) bool { return d.Lanes >= t.lanes() && d.Shared >= t.shared() }

// loaders returns the first lanes that load each operand, and the number of lanes that load it.
func (t panelTile) loaders() (a, b, each int) {
	if t.Split {
		return 0, t.lanes() / 2, t.lanes() / 2
	}
	return 0, 0, t.lanes()
}

// panelSums holds the sums of a lane: quad rows by quad columns of the tile. Each row of a quad is
// one vector.
type panelSums struct {
	panelTile
	b        *kernel.Builder
	rows     *panel
	cols     *panel
	row, col kernel.U32 // first quad of the lane in each direction
	v        [][]kernel.Var[kernel.Vec4F]
}

// panelSteps says which terms of a product are added: the number of steps, and the number of terms
// in the first step. The other steps are full.
type panelSteps struct{ steps, first kernel.U32 }

// multiply returns the sums of the products of the lines of a and b. Both panels must have been
// started.
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
		// After the last step, this stores the old values once more.
		r.store(sa, sb, now())
		b.Barrier()
	})
	return s
}

// A panelReader loads the panels in one lane: both of them, or only one if Split is set. With
// Split, the positions of both panels share registers.
type panelReader struct {
	panelTile
	b              *kernel.Builder
	pa, pb         *panel
	toA, toB       staged
	placeA, placeB []kernel.Var[kernel.U32]
	slotA, slotB   kernel.U32
	first          kernel.Bool // the lane loads a; used if Split is set
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

// either runs fa on the lanes that load a, and fb on the lanes that load b.
func (r *panelReader) either(fa, fb func()) {
	if r.Split {
		r.b.If(r.first, fa).Else(fb)
		return
	}
	fa()
	fb()
}

// load reads the next step. If have is not nil, the step has only *have terms.
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

// advance moves to the next step, which is the given number of terms ahead.
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

// store writes the loaded values to workgroup memory.
func (r *panelReader) store(sa, sb kernel.Array[kernel.Vec4F], stage kernel.U32) {
	r.either(func() { r.pa.store(sa, stage.Mul(kernel.U(uint32(r.pa.size()))).Add(r.slotA), r.toA) },
		func() { r.pb.store(sb, stage.Mul(kernel.U(uint32(r.pb.size()))).Add(r.slotB), r.toB) })
}

// step adds the products of a step that is in workgroup memory.
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
				s.v[i][j].Set(x.MulAdd(bs[j], s.v[i][j].Get()))
			}
		}
	}
}

// panelAside is the memory for partial sums between the launches of a product. A float32 adds at
// most exactTerms terms one after the other, so several launches share the terms of a long sum, and
// each of them adds the partial sums of the earlier launches.
type panelAside struct {
	at        kernel.Buffer[kernel.Vec4F]
	add, keep kernel.Bool // add: there are partial sums to add; keep: the sums are not complete and must be stored
}

// then adds the stored partial sums. If the sums are complete after this launch, it calls finish,
// and otherwise it stores them. A nil aside means that there are no partial sums.
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
		n := 0
		each(func(i kernel.U32, v kernel.Var[kernel.Vec4F]) {
			// Without these barriers, compilers read all vectors at once. This takes more registers
			// than the rest of the kernel, and the device runs fewer workgroups at a time.
			if n++; n%4 == 0 {
				s.b.Barrier()
			}
			v.Set(v.Get().Add(aside.at.At(i)))
		})
	})
	s.b.If(aside.keep, func() {
		each(func(i kernel.U32, v kernel.Var[kernel.Vec4F]) { aside.at.Set(i, v.Get()) })
	}).Else(finish)
}

// each calls put for each sum within rows × cols, counted from the first row and column of the
// tile, with the value of at for its column. If put4 is not nil, each calls put4 for each vector
// instead: cols must then be a multiple of four, and the lines of a quad of columns adjacent.
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

// lanePlace returns the row and the column of a lane in a group of 32 lanes that has the given
// number of rows. GPUs serve loads of 16 bytes by quarters of such a group and merge equal
// addresses within a quarter. Neighbouring lanes therefore share a column.
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

// tilesOf is the order of the tiles of a result in the grid: bands of rows of tiles, column by
// column, so that workgroups that run at the same time share operands.
type tilesOf struct{ across, down kernel.U32 }

// band is the number of rows of tiles in a band.
const band = 8

// place returns the row and the column of tile number, counted in tiles.
func (t tilesOf) place(number kernel.U32) (row, col kernel.U32) {
	rows := kernel.U(band)
	whole := t.across.Mul(rows)
	top := number.Div(whole).Mul(rows)
	in := number.Mod(whole)
	height := t.down.Sub(top).Min(rows)
	return top.Add(in.Mod(height)), in.Div(height)
}

// part returns the terms that one part of a launch adds: its first term and its steps. Steps are
// counted from 0. The first step has *first terms, and the others are full. The launch begins at
// step begin, and each part has *each steps, but none beyond *steps.
func (t panelTile) part(b *kernel.Builder, part kernel.U32, steps, first *uint32, begin kernel.U32, each *uint32) (from kernel.U32, p panelSteps) {
	depth := kernel.U(uint32(t.Depth))
	at := begin.Add(part.Mul(b.U32(each)))
	none := at.Eq(kernel.U(0))
	from = kernel.Select(none, kernel.U(0), b.U32(first).Add(at.Sub(kernel.U(1)).Mul(depth)))
	return from, panelSteps{b.U32(steps).Sub(at).Min(b.U32(each)), kernel.Select(none, b.U32(first), depth)}
}

// panelSpec specialises the kernels that multiply by panels.
type panelSpec struct {
	panelTile
	Type   op.DType
	A, B   panelForm
	Blocks op.DType // type of b if it is quantised
	WideC  bool     // rows of the result are multiples of four elements, and the epilogue takes vectors
	Bias   bool
	Part   bool // several workgroups share the terms of a sum, and each writes the sums of its part
}

type panelParams struct {
	Batch, M, N      uint32
	Across, Down     uint32 // number of tiles
	PitchA, PitchB   uint32 // strides of the rows in memory
	StrideA, StrideB uint32 // strides of the matrices
	Steps, First     uint32 // see panelTile.part
	Each, Parts      uint32
	Pair, Row, Rows  uint32 // of a launch that writes parts: its first product, its first row, and its number of rows
}

var panelMuls = maker[panelParams, panelSpec]{name: "matmul_panels", build: func(b *kernel.Builder, p *panelParams, s panelSpec, e *epilogue) {
	b.LocalSize(s.lanes(), 1, 1)
	if s.Type == op.F16 && s.Own*s.Wide >= 64 { // and operands are widened
		b.PreferRegisters()
	}
	firstA, firstB, loaders := s.loaders()
	pa := newPanel(b, "a", s.Type, s.A, s.Rows, s.Depth, firstA, loaders)
	var pb *panel
	if s.Blocks.Quantized() {
		pb = newBlockPanel(b, "b", s.Blocks, s.Cols, s.Depth, firstB, loaders)
	} else {
		pb = newPanel(b, "b", s.Type, s.B, s.Cols, s.Depth, firstB, loaders)
	}
	bias := optional(b, "bias", s.Type, s.Bias)
	var put, put4 func(i kernel.U32, v kernel.Dynamic)
	switch {
	case s.Part && s.WideC:
		put4 = vectorOutput(b, "parts", op.F32, 4).set
	case s.Part:
		put = outputValue(b, "parts", op.F32).set
	case s.WideC:
		put4 = e.result4(b, s.Type)
	default:
		put = e.result(b, s.Type)
	}

	u := func(v int) kernel.U32 { return kernel.U(uint32(v)) }
	m, n := b.U32(&p.M), b.U32(&p.N)
	tiles := tilesOf{b.U32(&p.Across), b.U32(&p.Down)}
	each := tiles.across.Mul(tiles.down)
	rest, number := b.Group().Div(each), b.Group().Mod(each)
	pair, part := rest, u(0)
	if s.Part {
		pair, part = rest.Mod(b.U32(&p.Batch)), rest.Div(b.U32(&p.Batch))
	}
	b.If(rest.Lt(b.U32(&p.Batch).Mul(b.U32(&p.Parts))), func() { // a folded grid has more workgroups than tiles
		row, col := tiles.place(number)
		row, col = row.Mul(u(s.Rows)), col.Mul(u(s.Cols))
		from, steps := u(0), panelSteps{b.U32(&p.Steps), b.U32(&p.First)}
		// Positions of partial sums are relative to the first row and product of the launch.
		rows, top, matrix := m, row, pair
		if s.Part {
			from, steps = s.part(b, part, &p.Steps, &p.First, u(0), &p.Each)
			rows, top, matrix = b.U32(&p.Rows), row.Add(b.U32(&p.Row)), pair.Add(b.U32(&p.Pair))
		}
		pa.start(matrix.Mul(b.U32(&p.StrideA)), from, top, m, b.U32(&p.PitchA))
		pb.start(matrix.Mul(b.U32(&p.StrideB)), from, col, n, b.U32(&p.PitchB))
		sums := s.multiply(b, pa, pb, steps)
		first := rest.Mul(rows).Add(row)
		place := func(r, at kernel.U32) kernel.U32 { return first.Add(r).Mul(n).Add(at) }
		var four func(r, c, at kernel.U32, v kernel.Vec4F)
		if s.WideC {
			four = func(r, _, at kernel.U32, v kernel.Vec4F) {
				if s.Bias {
					var x [4]kernel.F32
					for q := range x {
						x[q] = bias(at.Add(u(q)), v.At(q))
					}
					v = b.Vec4F(x[0], x[1], x[2], x[3])
				}
				put4(place(r, at).Shr(u(2)), kernel.Dyn(v))
			}
		}
		sums.each(rows.Sub(row), n.Sub(col), col.Add, func(r, _, at kernel.U32, v kernel.F32) {
			put(place(r, at), kernel.Dyn(bias(at, v)))
		}, four)
	})
}}

// filling is a number of workgroups that keeps a large device busy with products by panels. If
// there are fewer, several workgroups share the terms of a sum, at least minShare terms each.
const (
	filling  = 256
	minShare = 128
)

// maxPartialElements limits the number of partial sums that are kept at once.
const maxPartialElements = 1 << 26

// launchPanels plans a product by panels of tile t. If products share the right matrix and their
// left matrices are contiguous, they become one product with all rows.
//
// A float32 adds at most exactTerms terms one after the other. Longer sums are divided into parts,
// and a second kernel adds the parts. A single kernel that adds to the sums of an earlier launch
// needs so many registers that it is a quarter slower.
func launchPanels(q *request, pr op.Product, o op.MatMulOpts, t panelTile, name string) (*Plan, error) {
	if pr.SharedB && !o.TransA {
		pr.M, pr.Batch = pr.Batch*pr.M, 1
	}
	u := func(v int) uint32 { return uint32(v) }
	s := panelSpec{panelTile: t, Type: q.In[0].Type, Bias: len(q.In) > 2 && q.In[2].Shape != nil}
	pitchA, pitchB := pr.K, pr.N
	if o.TransA {
		pitchA = pr.M
	}
	if o.TransB {
		pitchB = pr.K
	}
	s.A, s.B = formOf(!o.TransA, pitchA), formOf(o.TransB, pitchB)
	if q.In[1].Type.Quantized() {
		s.Blocks = q.In[1].Type
	}
	s.WideC = pr.N%4 == 0 && q.epilogue.vectors(pr.N)
	across, down := (pr.N-1)/t.Cols+1, (pr.M-1)/t.Rows+1
	groups := pr.Batch * across * down
	steps := (pr.K-1)/t.Depth + 1
	params := panelParams{Batch: u(pr.Batch), M: u(pr.M), N: u(pr.N), Across: u(across), Down: u(down),
		PitchA: u(pitchA), PitchB: u(pitchB), StrideA: u(pr.M * pr.K), StrideB: u(pr.K * pr.N),
		Steps: u(steps), First: u((pr.K-1)%t.Depth + 1), Each: u(steps), Parts: 1}
	if pr.SharedB {
		params.StrideB = 0
	}
	var p planner
	in := p.withGrid(q, 1)
	parts := (pr.K-1)/exactTerms + 1
	if 2*groups <= filling {
		parts = max(parts, min(filling/groups, pr.K/minShare))
	}
	if parts <= 1 {
		p.stage(panelMuls.of(s, q.epilogue), kernel.GridOf(groups), params, append(in, q.outputs()...)...)
		return p.done(name)
	}
	p.panelParts(q, pr, s, params, in, parts)
	return p.done(name)
}

// panelParts adds the launches of a product by panels whose sums are divided into about the given number of parts, and
// the launches that add the parts.
func (p *planner) panelParts(q *request, pr op.Product, s panelSpec, params panelParams, in []Ref, parts int) {
	u := func(v int) uint32 { return uint32(v) }
	steps, across := int(params.Steps), int(params.Across)
	each := (steps-1)/parts + 1
	parts = (steps-1)/each + 1
	if s.Bias {
		in = in[:len(in)-1] // addParts adds the bias
	}
	s.Part, s.Bias, s.WideC = true, false, pr.N%4 == 0
	params.Each, params.Parts = u(each), u(parts)
	// If there is not enough memory for all products, plan one product at a time, or some of its
	// rows.
	products, rows := pr.Batch, pr.M
	if n := maxPartialElements / parts / pr.N / pr.M; n < products {
		products = max(1, n)
	}
	if products == 1 {
		rows = min(pr.M, max(1, maxPartialElements/parts/pr.N/s.Rows)*s.Rows)
	}
	sums := p.scratch(parts * products * rows * pr.N)
	for pair := 0; pair < pr.Batch; pair += products {
		for row := 0; row < pr.M; row += rows {
			params.Batch, params.Pair = u(min(products, pr.Batch-pair)), u(pair)
			n := min(rows, pr.M-row)
			params.Row, params.Rows = u(row), u(n)
			params.Down = u((n-1)/s.Rows + 1)
			grid := int(params.Batch) * across * int(params.Down) * parts
			p.stage(panelMuls.of(s, nil), kernel.GridOf(grid), params, append(slices.Clip(in), sums)...)
			p.addParts(q, sums, (pair*pr.M+row)*pr.N, int(params.Batch)*n*pr.N, parts, pr.N)
		}
	}
}

// launches divides k terms among launches. It calls f with the first step of each launch, its
// number of steps, and the values of panelAside.
func (t panelTile) launches(k int, f func(begin, each int, add, keep uint32)) {
	n, steps := (k-1)/exactTerms+1, (k-1)/t.Depth+1
	for i := range n {
		var add, keep uint32
		if i > 0 {
			add = 1
		}
		if i < n-1 {
			keep = 1
		}
		begin := steps * i / n
		f(begin, steps*(i+1)/n-begin, add, keep)
	}
}
