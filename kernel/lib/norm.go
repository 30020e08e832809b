package lib

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

func init() {
	register(rowFamily(layerNorms), op.LayerNorm)
	register(rowFamily(rmsNorms), op.RMSNorm)
}

var layerNorms = newMaker("layer_norm", func(b *kernel.Builder, p *rowParams, s rowSpec, e *epilogue) {
	t := newTeam(b, s.crew)
	x := input(b, "x", s.Type)
	gamma, beta := s.weight(b, 1, "gamma"), s.weight(b, 2, "beta")
	put := e.result(b, s.Type)
	r := newRow(t, b.U32(&p.Rows), b.U32(&p.Cols), s.Held, x)
	count := b.F32(&p.Count)
	mean := r.sum(func(x kernel.F32) kernel.F32 { return x }).Div(count)
	squares := r.sum(func(x kernel.F32) kernel.F32 { return x.Sub(mean).Square() })
	scale := squares.Div(count).Add(b.F32(&p.Eps)).Sqrt()
	r.each(func(j kernel.U32, x kernel.F32) {
		y := x.Sub(mean).Div(scale)
		if gamma != nil {
			y = y.Mul(gamma(j))
		}
		if beta != nil {
			y = y.Add(beta(j))
		}
		put(r.start.Add(j), kernel.Dyn(y))
	})
})

var rmsNorms = newMaker("rms_norm", func(b *kernel.Builder, p *rowParams, s rowSpec, e *epilogue) {
	t := newTeam(b, s.crew)
	x := input(b, "x", s.Type)
	gamma := s.weight(b, 1, "gamma")
	put := e.result(b, s.Type)
	r := newRow(t, b.U32(&p.Rows), b.U32(&p.Cols), s.Held, x)
	squares := r.sum(kernel.F32.Square)
	scale := squares.Div(b.F32(&p.Count)).Add(b.F32(&p.Eps)).Sqrt()
	r.each(func(j kernel.U32, x kernel.F32) {
		y := x.Div(scale)
		if gamma != nil {
			y = y.Mul(gamma(j))
		}
		put(r.start.Add(j), kernel.Dyn(y))
	})
})

// weight declares operand i, or returns nil if it is absent.
func (s *rowSpec) weight(b *kernel.Builder, i int, name string) func(j kernel.U32) kernel.F32 {
	if s.Weights>>i&1 == 0 {
		return nil
	}
	return input(b, name, s.Type)
}
