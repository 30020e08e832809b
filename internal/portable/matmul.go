//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// matMulOf has the properties that decide the schedule of a product.
type matMulOf struct{ op.Product }

// groups returns the number of workgroups for tiles of the given size.
func (m matMulOf) groups(rows, cols int) int {
	return m.Batch * ((m.M-1)/rows + 1) * ((m.N-1)/cols + 1)
}

// panels reports whether panels of tile t suit the product: the product fills more than half of a
// panel, and there are enough workgroups, including those that share the terms of a sum.
func (m matMulOf) panels(t panelTile, d *Target) bool {
	return m.K > 0 && m.M > t.Rows/2 && m.N > t.Cols/2 && m.groups(t.Rows, t.Cols)*max(1, m.K/minShare) >= enough && t.runs(d)
}

// enough is a number of workgroups that keeps a large device busy.
const enough = 128

// can reports whether the schedule can compute the product, at any speed.
func (w matMulSchedule) can(m matMulOf, d *Target) bool {
	if w.panel.Rows == 0 && w.Depth == 0 && !d.Serial {
		return false // it would keep a GPU busy for seconds
	}
	if w.panel.Rows == 0 {
		x, y := w.lanes()
		return d.Lanes >= x*y
	}
	return m.K > 0 && m.M > w.panel.Rows/4 && m.N > w.panel.Cols/4 && w.panel.runs(d)
}

// matMulSchedule is the schedule of a product: by panels if panel is set, and by tiles otherwise.
type matMulSchedule struct {
	matMulTile
	panel panelTile
}

var matMulSchedules = table[matMulOf, matMulSchedule]{
	{"direct", func(m matMulOf, t *Target) bool { return t.Serial && m.M > 8 }, matMulSchedule{matMulTile: matMulTile{4, 32, 0, 4, 2}}},
	{"panels128x128", func(m matMulOf, t *Target) bool { return m.panels(panel128x128, t) }, matMulSchedule{panel: panel128x128}},
	{"panels64x64", func(m matMulOf, t *Target) bool { return m.panels(panel64x64, t) }, matMulSchedule{panel: panel64x64}},
	{"panels64x64x8", func(m matMulOf, t *Target) bool { return m.panels(panel64x64x8, t) }, matMulSchedule{panel: panel64x64x8}},
	{"panels32x64", func(m matMulOf, t *Target) bool { return m.panels(panel32x64, t) }, matMulSchedule{panel: panel32x64}},
	{"128x128", func(m matMulOf, t *Target) bool { return m.groups(128, 128) >= enough && t.Lanes >= 256 }, matMulSchedule{matMulTile: matMulTile{128, 128, 16, 8, 2}}},
	{"64x64", func(m matMulOf, t *Target) bool { return m.groups(64, 64) >= enough && t.Lanes >= 128 }, matMulSchedule{matMulTile: matMulTile{64, 64, 16, 8, 1}}},
	{"32x64", func(m matMulOf, t *Target) bool { return m.M > 8 && t.Lanes >= 128 }, matMulSchedule{matMulTile: matMulTile{32, 64, 16, 4, 1}}},
	{"8x32", func(matMulOf, *Target) bool { return true }, matMulSchedule{matMulTile: matMulTile{8, 32, 32, 1, 1}}},
}

type matMulSpec struct {
	matMulTile
	Type           op.DType
	TransA, TransB bool
	WideA, WideB   bool // rows of the operand are multiples of four elements and are read in vectors
	Bias, Long     bool // Long: sums have more than exactTerms terms
}

type matMulParams struct {
	Batch, M, K, N uint32
	Across, Down   uint32 // number of tiles
	StrideB        uint32 // 0 if all products share one b
}

var matMuls = maker[matMulParams, matMulSpec]{name: "matmul", build: buildMatMul}

func buildMatMul(b *kernel.Builder, p *matMulParams, s matMulSpec, e *epilogue) {
	lx, ly := s.lanes()
	b.LocalSize(lx, ly, 1)
	var ta, tb *tile
	var da, db *matrix
	if s.Depth > 0 {
		ta = newTile(b, "a", s.Type, s.Rows, s.Depth, !s.TransA, s.WideA)
		tb = newTile(b, "b", s.Type, s.Cols, s.Depth, s.TransB, s.WideB)
	} else {
		da = newMatrix(b, "a", s.Type, !s.TransA, s.WideA && s.WideB)
		db = newMatrix(b, "b", s.Type, s.TransB, s.WideA && s.WideB)
	}
	var bias func(kernel.U32) kernel.F32
	if s.Bias {
		bias = input(b, "bias", s.Type)
	}
	put := e.result(b, s.Type)

	m, k, n := b.U32(&p.M), b.U32(&p.K), b.U32(&p.N)
	across, down := b.U32(&p.Across), b.U32(&p.Down)
	tiles := across.Mul(down)
	pair, tile := b.Group().Div(tiles), b.Group().Mod(tiles)
	b.If(pair.Lt(b.U32(&p.Batch)), func() { // a folded grid has more workgroups than tiles
		row := tile.Div(across).Mul(kernel.U(uint32(s.Rows)))
		col := tile.Mod(across).Mul(kernel.U(uint32(s.Cols)))
		originA, originB := pair.Mul(m.Mul(k)), pair.Mul(b.U32(&p.StrideB))
		var sums [][]kernel.Var[kernel.Vec4F]
		if s.Depth > 0 {
			ta.start(originA, row, m, k)
			tb.start(originB, col, n, k)
			sums = s.multiply(b, ta, tb, k, s.Long)
		} else {
			da.origin, da.lines, da.terms = originA, m, k
			db.origin, db.lines, db.terms = originB, n, k
			sums = s.direct(b, da, db, row, col, k, s.Long)
		}
		start := pair.Mul(m.Mul(n))
		s.each(b, sums, row, col, m, n, func(r, c kernel.U32, v kernel.F32) {
			if s.Bias {
				v = v.Add(bias(c))
			}
			put(start.Add(r.Mul(n)).Add(c), kernel.Dyn(v))
		})
	})
}

func planMatMul(q *request) (*Plan, error) {
	shapes := []op.Shape{q.In[0].Shape, q.In[1].Shape}
	pr, err := op.MatMulOf(&q.Attrs, shapes)
	if err != nil {
		return nil, err
	}
	t, name, err := matMulSchedules.choose(q, matMulOf{pr})
	if err != nil {
		return nil, err
	}
	return launchMatMul(q, pr, t, name)
}

// launchMatMul plans a product with the given schedule.
func launchMatMul(q *request, pr op.Product, schedule matMulSchedule, name string) (*Plan, error) {
	o := op.MatMulOptsOf(&q.Attrs)
	if schedule.panel.Rows > 0 {
		return launchPanels(q, pr, o, schedule.panel, name)
	}
	t := schedule.matMulTile
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
