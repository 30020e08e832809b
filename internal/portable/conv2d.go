//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// convOf has the properties that decide the schedule of a correlation.
type convOf struct{ op.Convolution }

// product describes the correlation of one group of channels as a product of matrices: the filters
// by the positions of the result, summed over the elements of a filter.
func (c convOf) product() matMulOf {
	g := max(c.Groups, 1)
	return matMulOf{op.Product{Batch: g, M: c.O / g, K: c.C / g * c.KH * c.KW, N: c.N * c.OutH * c.OutW}}
}

// maxTerms limits the table of the elements of a window.
const maxTerms = 1 << 16

var convSchedules = table[convOf, matMulSchedule]{
	{"panels128x128", func(c convOf, t *Target) bool { return c.O/max(c.Groups, 1) > 64 && c.panels(panel128x128, t) }, matMulSchedule{panel: panel128x128}},
	{"panels64x64", func(c convOf, t *Target) bool { return c.O/max(c.Groups, 1) > 32 && c.panels(panel64x64, t) }, matMulSchedule{panel: panel64x64}},
	{"64x64", func(c convOf, t *Target) bool {
		return c.product().M > 32 && c.product().groups(64, 64) >= enough && t.Lanes >= 128
	}, matMulSchedule{matMulTile: matMulTile{64, 64, 16, 8, 1}}},
	{"32x64", func(c convOf, t *Target) bool { return c.product().M > 8 && t.Lanes >= 128 }, matMulSchedule{matMulTile: matMulTile{32, 64, 16, 4, 1}}},
	{"8x64", func(convOf, *Target) bool { return true }, matMulSchedule{matMulTile: matMulTile{8, 64, 16, 2, 1}}},
}

// panels reports whether panels of tile t suit the correlation: it has enough tiles, and its
// windows are small enough.
func (c convOf) panels(t panelTile, d *Target) bool {
	p := c.product()
	return p.K > 0 && p.K <= maxTerms && p.groups(t.Rows, t.Cols) >= enough && t.runs(d)
}

type convSpec struct {
	matMulTile
	Type       op.DType
	Bias, Long bool
}

type convParams struct {
	Groups, M, K, N      uint32 // the products: one for each group of channels
	Across, Down         uint32 // number of tiles
	C, H, W              uint32 // extents of an image
	KH, KW, OutH, OutW   uint32
	StrideY, StrideX     uint32
	PadY, PadX           uint32
	DilationY, DilationX uint32
	Channels             uint32 // channels of a group
	Windows              uint32 // filters of all groups
}

// convs multiplies the filters, as rows, by the pixels under them, as columns. The kernel gathers a
// column while it reads the image.
var convs = maker[convParams, convSpec]{name: "conv2d", build: func(b *kernel.Builder, p *convParams, s convSpec, e *epilogue) {
	lx, ly := s.lanes()
	b.LocalSize(lx, ly, 1)
	x := input(b, "x", s.Type)
	windows := newTile(b, "w", s.Type, s.Rows, s.Depth, true, false)
	var bias func(kernel.U32) kernel.F32
	if s.Bias {
		bias = input(b, "bias", s.Type)
	}
	put := e.result(b, s.Type)

	m, k, n := b.U32(&p.M), b.U32(&p.K), b.U32(&p.N)
	across, down := b.U32(&p.Across), b.U32(&p.Down)
	tiles := across.Mul(down)
	group, number := b.Group().Div(tiles), b.Group().Mod(tiles)
	h, w := b.U32(&p.H), b.U32(&p.W)
	outW, outs := b.U32(&p.OutW), b.U32(&p.OutH).Mul(b.U32(&p.OutW))
	places := newGathered(b, "x", s.Cols, s.Depth, false, func(line, term kernel.U32) kernel.F32 {
		image, place := line.Div(outs), line.Mod(outs)
		window := b.U32(&p.KH).Mul(b.U32(&p.KW))
		channel, at := term.Div(window), term.Mod(window)
		i, j := at.Div(b.U32(&p.KW)), at.Mod(b.U32(&p.KW))
		// Positions in the padding are negative and wrap to large unsigned numbers.
		y := place.Div(outW).Mul(b.U32(&p.StrideY)).Add(i.Mul(b.U32(&p.DilationY))).Sub(b.U32(&p.PadY))
		z := place.Mod(outW).Mul(b.U32(&p.StrideX)).Add(j.Mul(b.U32(&p.DilationX))).Sub(b.U32(&p.PadX))
		plane := image.Mul(b.U32(&p.C)).Add(group.Mul(b.U32(&p.Channels))).Add(channel)
		v := kernel.NewVar(b, "pixel", kernel.F(0))
		b.If(y.Lt(h).And(z.Lt(w)), func() { v.Set(x(plane.Mul(h).Add(y).Mul(w).Add(z))) })
		return v.Get()
	})
	b.If(group.Lt(b.U32(&p.Groups)), func() { // a folded grid has more workgroups than tiles
		row := number.Div(across).Mul(kernel.U(uint32(s.Rows)))
		col := number.Mod(across).Mul(kernel.U(uint32(s.Cols)))
		windows.start(group.Mul(m.Mul(k)), row, m, k)
		places.start(kernel.U(0), col, n, k)
		sums := s.multiply(b, windows, places, k, s.Long)
		s.each(b, sums, row, col, m, n, func(r, c kernel.U32, v kernel.F32) {
			o := group.Mul(m).Add(r)
			if s.Bias {
				v = v.Add(bias(o))
			}
			plane := c.Div(outs).Mul(b.U32(&p.Windows)).Add(o)
			put(plane.Mul(outs).Add(c.Mod(outs)), kernel.Dyn(v))
		})
	})
}}

func planConv2D(q *request) (*Plan, error) {
	shapes := []op.Shape{q.In[0].Shape, q.In[1].Shape}
	c, err := op.Conv2DOf(&q.Attrs, shapes)
	if err != nil {
		return nil, err
	}
	t, name, err := convSchedules.choose(q, convOf{c})
	if err != nil {
		return nil, err
	}
	return launchConv2D(q, c, t, name)
}

// launchConv2D plans a correlation with the given schedule.
func launchConv2D(q *request, c op.Convolution, schedule matMulSchedule, name string) (*Plan, error) {
	if schedule.panel.Rows > 0 {
		schedule.panel.Split = false // each lane loads parts of both operands
		return launchConvPanels(q, c, schedule.panel, name)
	}
	t := schedule.matMulTile
	o := op.Conv2DOptsOf(&q.Attrs)
	pr := convOf{c}.product()
	s := convSpec{matMulTile: t, Type: q.In[0].Type, Bias: len(q.In) > 2 && q.In[2].Shape != nil, Long: pr.K > exactTerms}
	across, down := (pr.N-1)/t.Cols+1, (pr.M-1)/t.Rows+1
	u := func(v int) uint32 { return uint32(v) }
	params := convParams{Groups: u(pr.Batch), M: u(pr.M), K: u(pr.K), N: u(pr.N), Across: u(across), Down: u(down),
		C: u(c.C), H: u(c.H), W: u(c.W), KH: u(c.KH), KW: u(c.KW), OutH: u(c.OutH), OutW: u(c.OutW),
		StrideY: u(o.Stride[0]), StrideX: u(o.Stride[1]), PadY: u(o.Pad[0]), PadX: u(o.Pad[1]),
		DilationY: u(o.Dilation[0]), DilationX: u(o.Dilation[1]),
		Channels: u(c.C / c.Groups), Windows: u(c.O)}
	var p planner
	p.stage(convs.of(s, q.epilogue), kernel.GridOf(pr.Batch*across*down), params, append(q.inputs(), q.outputs()...)...)
	return p.done(name)
}
