package webgpu

import (
	"strings"

	"github.com/rayo-go/rayo/kernel/lib"
	"github.com/rayo-go/rayo/op"
)

// Mesa's lavapipe ends the loops of a lane as soon as they have had 65,535 turns
// together, and says nothing: a sum would be that of some of its terms. (The constant is
// LP_MAX_TGSI_LOOP_ITERATIONS.) The operations below go through terms lane by lane, and
// where these are many the reference computes them there. Reductions, rows and running
// sums divide what is long.

// most is how much of each operation lavapipe gets right, as far as that was tried. What
// was seen to go wrong first: 2M of attention's numbers, and 59,000 keys; 262,000 terms of
// conv2d, 2M of matmul, rows of 16M of topk.
const (
	mostKeys       = 1 << 15
	mostKeyNumbers = 1 << 20 // keys times the elements of each
	mostWindow     = 1 << 16 // channels of a group times the extents of a window
	mostInner      = 1 << 18 // terms of a product
	mostQuantised  = 1 << 16 // terms of a product with a quantised matrix
	mostRanked     = 1 << 22 // elements of a row of topk
)

// tooLong reports whether the driver would end the loops of an operation.
func (d *device) tooLong(r *lib.Request) bool {
	if !strings.Contains(d.info.Name, "llvmpipe") {
		return false
	}
	in := make([]op.Shape, len(r.In))
	for i, a := range r.In {
		in[i] = a.Shape
	}
	switch r.Op {
	case op.Attention:
		s, err := op.AttentionOf(&r.Attrs, in)
		return err == nil && (s.Tk > mostKeys || s.Tk*s.D > mostKeyNumbers)
	case op.Conv2D:
		c, err := op.Conv2DOf(&r.Attrs, in)
		return err == nil && c.C/c.Groups*c.KH*c.KW > mostWindow
	case op.MatMul:
		p, err := op.MatMulOf(&r.Attrs, in)
		return err == nil && p.K > mostInner
	case op.MatVec:
		return in[1][0] > mostInner
	case op.MatMulQ:
		p, err := op.MatMulQOf(in)
		return err == nil && p.K > mostQuantised
	case op.TopK:
		_, cols := in[0].Rows()
		return cols > mostRanked
	}
	return false
}
