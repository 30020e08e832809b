package lib

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

func init() { register(&family{plan: planMatMul, variants: matMulWays.names()}, op.MatMul) }

// matMulTile is how a product is cut: a workgroup makes Rows × Cols of the
// result, walks the inner extent in steps of Depth, and each lane makes Own rows
// of a vector of four columns, or of Wide such vectors.
type matMulTile struct {
	Rows, Cols, Depth int
	Own, Wide         int
}

func (t matMulTile) lanes() (x, y int) { return t.Cols / (4 * t.Wide), t.Rows / t.Own }

// matMulOf is what decides how a product is cut.
type matMulOf struct{ op.Product }

// groups returns how many workgroups tiles of a size give.
func (m matMulOf) groups(rows, cols int) int {
	return m.Batch * ((m.M-1)/rows + 1) * ((m.N-1)/cols + 1)
}

// enough is a number of workgroups that keeps a large device busy.
const enough = 128

var matMulWays = table[matMulOf, matMulTile]{
	{"128x128", func(m matMulOf, t *Target) bool { return m.groups(128, 128) >= enough && t.Lanes >= 256 }, matMulTile{128, 128, 16, 8, 2}},
	{"64x64", func(m matMulOf, t *Target) bool { return m.groups(64, 64) >= enough && t.Lanes >= 128 }, matMulTile{64, 64, 16, 8, 1}},
	{"32x64", func(m matMulOf, t *Target) bool { return m.M > 8 && t.Lanes >= 128 }, matMulTile{32, 64, 16, 4, 1}},
	{"8x32", func(matMulOf, *Target) bool { return true }, matMulTile{8, 32, 32, 1, 1}},
}

// exactTerms is how many terms a float32 adds up one after the other within the
// tolerance of sums; more are added in parts.
const exactTerms = 1024

type matMulSpec struct {
	matMulTile
	Type           op.DType
	TransA, TransB bool
	WideA, WideB   bool // rows of the operand are vectors of four
	Bias, Long     bool // Long: more than exactTerms terms
}

type matMulParams struct {
	Batch, M, K, N uint32
	Across, Down   uint32 // tiles
	StrideB        uint32 // 0 for one b for all
}

var matMuls = newMaker("matmul", buildMatMul)

// buildMatMul: a tile of a and one of b come into workgroup memory, then every
// lane multiplies its rows by its columns, which it keeps in variables.
func buildMatMul(b *kernel.Builder, p *matMulParams, s matMulSpec, e *epilogue) {
	lx, ly := s.lanes()
	b.LocalSize(lx, ly, 1)
	ta := newTile(b, "a", s.Type, s.Rows, s.Depth, !s.TransA, s.WideA)
	tb := newTile(b, "b", s.Type, s.Cols, s.Depth, s.TransB, s.WideB)
	var bias func(kernel.U32) kernel.F32
	if s.Bias {
		bias = input(b, "bias", s.Type)
	}
	put := e.result(b, s.Type)

	m, k, n := b.U32(&p.M), b.U32(&p.K), b.U32(&p.N)
	across, down := b.U32(&p.Across), b.U32(&p.Down)
	tiles := across.Mul(down)
	pair, tile := b.Group().Div(tiles), b.Group().Mod(tiles)
	b.If(pair.Lt(b.U32(&p.Batch)), func() { // the grid may be folded
		row := tile.Div(across).Mul(kernel.U(uint32(s.Rows)))
		col := tile.Mod(across).Mul(kernel.U(uint32(s.Cols)))
		ta.start(pair.Mul(m.Mul(k)), row, m, k)
		tb.start(pair.Mul(b.U32(&p.StrideB)), col, n, k)

		sums := make([][]kernel.Var[kernel.Vec4F], s.Own)
		for i := range sums {
			sums[i] = kernel.NewVars(b, "sum", s.Wide, kernel.Vec4F{})
		}
		steps := func(from, to kernel.U32) {
			b.ForStep(from, to, kernel.U(uint32(s.Depth)), func(at kernel.U32) {
				ta.load(at)
				tb.load(at)
				b.Barrier()
				b.ForStep(kernel.U(0), kernel.U(uint32(s.Depth)), kernel.U(4), func(d kernel.U32) {
					as := make([]kernel.Vec4F, s.Own)
					for i := range as {
						as[i] = ta.along(b.LocalY().Add(kernel.U(uint32(i*ly))), d)
					}
					for c := range 4 {
						for j := range s.Wide {
							x := tb.beside(d.Add(kernel.U(uint32(c))), b.LocalX().Add(kernel.U(uint32(j*lx))))
							for i := range as {
								sums[i][j].Set(as[i].At(c).Splat4().Fma(x, sums[i][j].Get()))
							}
						}
					}
				})
				b.Barrier()
			})
		}
		if s.Long {
			inParts(b, k, steps, sums)
		} else {
			steps(kernel.U(0), k)
		}

		start := pair.Mul(m.Mul(n))
		for i := range sums {
			r := row.Add(b.LocalY()).Add(kernel.U(uint32(i * ly)))
			b.If(r.Lt(m), func() {
				for j := range sums[i] {
					v := sums[i][j].Get()
					for c := range 4 {
						at := col.Add(b.LocalX().Add(kernel.U(uint32(j * lx))).Mul(kernel.U(4))).Add(kernel.U(uint32(c)))
						b.If(at.Lt(n), func() {
							y := v.At(c)
							if s.Bias {
								y = y.Add(bias(at))
							}
							put(start.Add(r.Mul(n)).Add(at), kernel.Dyn(y))
						})
					}
				}
			})
		}
	})
}

// inParts runs steps over parts of [0, k) of no more than exactTerms and adds
// the sums of the parts up: into totals that go back into sums.
func inParts(b *kernel.Builder, k kernel.U32, steps func(from, to kernel.U32), sums [][]kernel.Var[kernel.Vec4F]) {
	totals := make([][]kernel.Var[kernel.Vec4F], len(sums))
	for i := range sums {
		totals[i] = kernel.NewVars(b, "total", len(sums[i]), kernel.Vec4F{})
	}
	b.ForStep(kernel.U(0), k, kernel.U(exactTerms), func(from kernel.U32) {
		steps(from, k.Min(from.Add(kernel.U(exactTerms))))
		for i := range sums {
			for j := range sums[i] {
				totals[i][j].Set(totals[i][j].Get().Add(sums[i][j].Get()))
				sums[i][j].Set(kernel.Vec4F{})
			}
		}
	})
	for i := range sums {
		for j := range sums[i] {
			sums[i][j].Set(totals[i][j].Get())
		}
	}
}

// A tile is a part of a matrix in workgroup memory: side lines of depth elements.
// Rows of the matrix in memory are lines if deep, and lie across the lines if
// not. If the rows are vectors of four, they are moved as such and kept so; then
// only [tile.along] has them if deep, and only [tile.beside] if not.
type tile struct {
	b           *kernel.Builder
	side, depth int
	deep        bool
	wide        kernel.Array[kernel.Vec4F]
	narrow      kernel.Array[kernel.F32]
	at          func(i kernel.U32) kernel.F32
	at4         func(i kernel.U32) kernel.Vec4F // nil unless rows are vectors

	origin, first, lines, terms kernel.U32
}

func newTile(b *kernel.Builder, name string, t op.DType, side, depth int, deep, wide bool) *tile {
	x := &tile{b: b, side: side, depth: depth, deep: deep}
	if wide {
		x.at4 = kernel.Input[kernel.Vec4F](b, name).At
		x.wide = kernel.Shared[kernel.Vec4F](b, "tile_"+name, side*depth/4)
	} else {
		x.at = input(b, name, t)
		x.narrow = kernel.Shared[kernel.F32](b, "tile_"+name, side*depth)
	}
	return x
}

// start says which lines are meant: from first on, of a matrix of so many lines
// and terms that begins at origin.
func (x *tile) start(origin, first, lines, terms kernel.U32) {
	x.origin, x.first, x.lines, x.terms = origin, first, lines, terms
}

// load brings the depth terms from at on into the tile; zeros stand for what is
// beyond the matrix. Neighbouring lanes read neighbouring elements.
func (x *tile) load(at kernel.U32) {
	b, unit := x.b, 1
	if x.at4 != nil {
		unit = 4
	}
	inner, outer := x.side/unit, x.depth
	if x.deep {
		inner, outer = x.depth/unit, x.side
	}
	units := inner * outer
	for e := 0; e < units; e += b.Lanes() {
		i := b.Lane().Add(kernel.U(uint32(e)))
		load := func() {
			in, out := i.Mod(kernel.U(uint32(inner))), i.Div(kernel.U(uint32(inner)))
			line, term := x.first.Add(in.Mul(kernel.U(uint32(unit)))), at.Add(out)
			place := x.origin.Add(term.Mul(x.lines)).Add(line)
			if x.deep {
				line, term = x.first.Add(out), at.Add(in.Mul(kernel.U(uint32(unit))))
				place = x.origin.Add(line.Mul(x.terms)).Add(term)
			}
			inside := line.Lt(x.lines).And(term.Lt(x.terms))
			if unit == 4 {
				v := kernel.NewVar(b, "v", kernel.Vec4F{})
				b.If(inside, func() { v.Set(x.at4(place.Shr(kernel.U(2)))) })
				x.wide.Set(i, v.Get())
				return
			}
			v := kernel.NewVar(b, "v", kernel.F(0))
			b.If(inside, func() { v.Set(x.at(place)) })
			x.narrow.Set(i, v.Get())
		}
		if e+b.Lanes() <= units {
			load()
		} else {
			b.If(i.Lt(kernel.U(uint32(units))), load)
		}
	}
}

// element returns term d of a line.
func (x *tile) element(line, d kernel.U32) kernel.F32 {
	if x.deep {
		return x.narrow.At(line.Mul(kernel.U(uint32(x.depth))).Add(d))
	}
	return x.narrow.At(d.Mul(kernel.U(uint32(x.side))).Add(line))
}

// along returns the terms d to d+3 of a line; d is a multiple of four.
func (x *tile) along(line, d kernel.U32) kernel.Vec4F {
	if x.at4 != nil {
		return x.wide.At(line.Mul(kernel.U(uint32(x.depth / 4))).Add(d.Div(kernel.U(4))))
	}
	var v [4]kernel.F32
	for c := range v {
		v[c] = x.element(line, d.Add(kernel.U(uint32(c))))
	}
	return x.b.Vec4F(v[0], v[1], v[2], v[3])
}

// beside returns term d of the lines 4g to 4g+3.
func (x *tile) beside(d, g kernel.U32) kernel.Vec4F {
	four := kernel.U(4)
	if x.at4 != nil {
		return x.wide.At(d.Mul(kernel.U(uint32(x.side / 4))).Add(g))
	}
	var v [4]kernel.F32
	for c := range v {
		v[c] = x.element(g.Mul(four).Add(kernel.U(uint32(c))), d)
	}
	return x.b.Vec4F(v[0], v[1], v[2], v[3])
}

func planMatMul(q *request) (*Plan, error) {
	shapes := []op.Shape{q.In[0].Shape, q.In[1].Shape}
	pr, err := op.MatMulOf(&q.Attrs, shapes)
	if err != nil {
		return nil, err
	}
	t, name, err := matMulWays.choose(q, matMulOf{pr})
	if err != nil {
		return nil, err
	}
	return launchMatMul(q, pr, t, name)
}

// launchMatMul makes the plan with tiles of one size.
func launchMatMul(q *request, pr op.Product, t matMulTile, name string) (*Plan, error) {
	o := op.MatMulOptsOf(&q.Attrs)
	f32 := q.In[0].Type == op.F32
	s := matMulSpec{matMulTile: t, Type: q.In[0].Type, TransA: o.TransA, TransB: o.TransB,
		WideA: f32 && !o.TransA && pr.K%4 == 0, WideB: f32 && !o.TransB && pr.N%4 == 0,
		Bias: len(q.In) > 2 && q.In[2].Shape != nil, Long: pr.K > exactTerms}
	across, down := (pr.N-1)/t.Cols+1, (pr.M-1)/t.Rows+1
	params := matMulParams{uint32(pr.Batch), uint32(pr.M), uint32(pr.K), uint32(pr.N), uint32(across), uint32(down), uint32(pr.K * pr.N)}
	if pr.SharedB {
		params.StrideB = 0
	}
	var p planner
	p.stage(matMuls.of(s, q.epilogue), kernel.GridOf(pr.Batch*across*down), params, append(q.inputs(), q.outputs()...)...)
	return p.done(name)
}
