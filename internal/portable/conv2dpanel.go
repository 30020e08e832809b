//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// convPanelSpec specialises convPanels.
type convPanelSpec struct {
	panelTile
	Type       op.DType
	A          panelForm // form of the filters
	Bias, Long bool
}

type convPanelParams struct {
	Groups, M, K, N  uint32 // the products: one for each group of channels
	Across, Down     uint32 // number of tiles
	Steps, First     uint32 // see panelTile.part
	Begin, Each      uint32
	Add, Keep        uint32 // for panelAside
	Image, Group     uint32 // elements of an image; elements of the channels of a group
	H, W             uint32
	OutW, Outs       uint32 // columns of a row, and elements of a plane, of the result
	StrideY, StrideX uint32
	PadY, PadX       uint32
	Windows          uint32 // filters of all groups
}

// convPanels multiplies the filters, as rows, by the pixels under them, as columns. The kernel
// gathers a column while it reads the image. For each element of a window, terms holds its distance
// from the first element of the window: in memory, in rows and in columns.
var convPanels = maker[convPanelParams, convPanelSpec]{name: "conv2d_panels", build: func(b *kernel.Builder, p *convPanelParams, s convPanelSpec, e *epilogue) {
	b.LocalSize(s.lanes(), 1, 1)
	firstA, firstB, loaders := s.loaders()
	x := input(b, "x", s.Type)
	pa := newPanel(b, "w", s.Type, s.A, s.Rows, s.Depth, firstA, loaders)
	pb := newPanel(b, "x", s.Type, gathered, s.Cols, s.Depth, firstB, loaders)
	bias := optional(b, "bias", s.Type, s.Bias)
	terms := kernel.Input[kernel.Vec4U](b, "terms")
	var aside *panelAside
	if s.Long {
		aside = &panelAside{kernel.InOut[kernel.Vec4F](b, "aside"), b.U32(&p.Add).Ne(kernel.U(0)), b.U32(&p.Keep).Ne(kernel.U(0))}
	}
	put := e.result(b, s.Type)

	m, n := b.U32(&p.M), b.U32(&p.N)
	tiles := tilesOf{b.U32(&p.Across), b.U32(&p.Down)}
	group, number := b.Group().Div(tiles.across.Mul(tiles.down)), b.Group().Mod(tiles.across.Mul(tiles.down))
	b.If(group.Lt(b.U32(&p.Groups)), func() { // a folded grid has more workgroups than tiles
		row, col := tiles.place(number)
		row, col = row.Mul(kernel.U(uint32(s.Rows))), col.Mul(kernel.U(uint32(s.Cols)))
		from, steps := kernel.U(0), panelSteps{b.U32(&p.Steps), b.U32(&p.First)}
		if s.Long {
			from, steps = s.part(b, kernel.U(0), &p.Steps, &p.First, b.U32(&p.Begin), &p.Each)
		}
		pa.start(group.Mul(m.Mul(b.U32(&p.K))), from, row, m, b.U32(&p.K))
		pb.start(kernel.U(0), from, col, n, kernel.U(0))
		type pixel struct{ at, y, x kernel.U32 }
		pixels := make([][4]pixel, len(pb.units))
		h, w, outW, outs := b.U32(&p.H), b.U32(&p.W), b.U32(&p.OutW), b.U32(&p.Outs)
		for i := range pixels {
			for q := range pixels[i] {
				line := pb.units[i].line[q]
				image, place := line.Div(outs), line.Mod(outs)
				// Positions in the padding are negative and wrap to large unsigned numbers.
				y := place.Div(outW).Mul(b.U32(&p.StrideY)).Sub(b.U32(&p.PadY))
				x := place.Mod(outW).Mul(b.U32(&p.StrideX)).Sub(b.U32(&p.PadX))
				at := image.Mul(b.U32(&p.Image)).Add(group.Mul(b.U32(&p.Group))).Add(y.Mul(w)).Add(x)
				pixels[i][q] = pixel{at, y, x}
			}
		}
		pb.get = func(i, q int, term kernel.U32) kernel.F32 {
			t, from := terms.At(term), pixels[i][q]
			inside := from.y.Add(t.At(1)).Lt(h).And(from.x.Add(t.At(2)).Lt(w))
			v := x(kernel.Select(inside, from.at.Add(t.At(0)), kernel.U(0)))
			return kernel.Select(inside, v, kernel.F(0))
		}
		sums := s.multiply(b, pa, pb, steps)
		windows := b.U32(&p.Windows)
		plane := func(c kernel.U32) kernel.U32 {
			place := col.Add(c)
			image := place.Div(outs)
			return image.Mul(windows.Mul(outs)).Add(place.Sub(image.Mul(outs)))
		}
		sums.then(aside, func() {
			sums.each(m.Sub(row), n.Sub(col), plane, func(r, _, at kernel.U32, v kernel.F32) {
				o := group.Mul(m).Add(row).Add(r)
				put(o.Mul(outs).Add(at), kernel.Dyn(bias(o, v)))
			}, nil)
		})
	})
}}

// launchConvPanels plans a correlation by panels of tile t.
func launchConvPanels(q *request, c op.Convolution, t panelTile, name string) (*Plan, error) {
	o := op.Conv2DOptsOf(&q.Attrs)
	pr := convOf{c}.product()
	s := convPanelSpec{panelTile: t, Type: q.In[0].Type, A: formOf(true, pr.K), Bias: len(q.In) > 2 && q.In[2].Shape != nil, Long: pr.K > exactTerms}
	across, down := (pr.N-1)/t.Cols+1, (pr.M-1)/t.Rows+1
	u := func(v int) uint32 { return uint32(v) }
	channels := c.C / c.Groups
	params := convPanelParams{Groups: u(pr.Batch), M: u(pr.M), K: u(pr.K), N: u(pr.N), Across: u(across), Down: u(down),
		Steps: u((pr.K-1)/t.Depth + 1), First: u((pr.K-1)%t.Depth + 1),
		Image: u(c.C * c.H * c.W), Group: u(channels * c.H * c.W), H: u(c.H), W: u(c.W),
		OutW: u(c.OutW), Outs: u(c.OutH * c.OutW), StrideY: u(o.Stride[0]), StrideX: u(o.Stride[1]), PadY: u(o.Pad[0]), PadX: u(o.Pad[1]), Windows: u(c.O)}
	var terms []uint32
	for channel := range channels {
		for i := range c.KH {
			for j := range c.KW {
				y, x := i*o.Dilation[0], j*o.Dilation[1]
				terms = append(terms, u((channel*c.H+y)*c.W+x), u(y), u(x), 0)
			}
		}
	}
	var p planner
	bind := append(q.inputs(), p.words(terms))
	if s.Long {
		bind = append(bind, p.scratch(pr.Batch*across*down*t.Rows*t.Cols))
	}
	bind = append(bind, q.outputs()...)
	t.launches(pr.K, func(begin, each int, add, keep uint32) {
		params.Begin, params.Each, params.Add, params.Keep = u(begin), u(each), add, keep
		p.stage(convPanels.of(s, q.epilogue), kernel.GridOf(pr.Batch*across*down), params, bind...)
	})
	return p.done(name)
}
