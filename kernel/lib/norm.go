package lib

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

func init() {
	register(rowFamily(layerNorms, 3, variances), op.LayerNorm)
	register(rowFamily(rmsNorms, 1, sums), op.RMSNorm)
}

var layerNorms = newMaker("layer_norm", func(b *kernel.Builder, p *rowParams, s rowSpec, e *epilogue) {
	t := newTeam(b, s.crew)
	x := inputUnits(b, "x", s.Type, s.Unit)
	gamma, beta := s.weight(b, 1, "gamma"), s.weight(b, 2, "beta")
	var pieces momentPieces
	if s.Split {
		pieces = inputMoments(b)
		b.Roomy() // of a part that is read before the pieces are
	}
	put := e.units(b, s.Type, s.Unit)
	r := newRow(b, t, p, &s, x)
	count := b.F32(&p.Count)
	var mean, squares kernel.F32
	if s.Held {
		mean = t.sum(tree(only(r.held, r.there, kernel.F(0)))).Div(count)
		for i, x := range r.held {
			r.held[i] = x.Sub(mean)
		}
		ds := only(r.held, r.there, kernel.F(0))
		squares = t.sum(products(ds, ds))
	} else {
		var off kernel.F32
		if s.Split {
			mean, squares, off = pieces.merge(t, r.pieces[0], r.pieces[1], count, b.F32(&p.Length), b.F32(&p.Tail))
		} else {
			mean, squares, off = momentsOf(&r.strip, s.Unit, x, b.U32(&p.Cols).Mul(kernel.U(uint32(s.Unit))))
		}
		mean, squares = mean.Add(off), squares.Sub(off.Mul(off.Mul(count)))
	}
	scale := squares.Div(count).Add(b.F32(&p.Eps)).Sqrt().Recip()
	r.write(put, func(j kernel.U32, xs []kernel.F32) []kernel.F32 {
		return affine(xs, gamma, beta, j, func(x kernel.F32) kernel.F32 {
			if !s.Held {
				x = x.Sub(mean)
			}
			return x.Mul(scale)
		})
	})
})

var rmsNorms = newMaker("rms_norm", func(b *kernel.Builder, p *rowParams, s rowSpec, e *epilogue) {
	t := newTeam(b, s.crew)
	x := inputUnits(b, "x", s.Type, s.Unit)
	gamma := s.weight(b, 1, "gamma")
	var pieces kernel.Buffer[kernel.F32]
	if s.Split {
		pieces = kernel.Input[kernel.F32](b, "pieces")
	}
	put := e.units(b, s.Type, s.Unit)
	r := newRow(b, t, p, &s, x)
	var squares kernel.F32
	switch {
	case s.Held:
		xs := only(r.held, r.there, kernel.F(0))
		squares = products(xs, xs)
	case s.Split:
		squares = total(b, r.pieces[0].Add(t.lane), r.pieces[1], t.Team, func(acc kernel.F32, i kernel.U32) kernel.F32 {
			return acc.Add(pieces.At(i))
		})
	default:
		squares = r.sums(s.Unit, 1, func(at []kernel.U32, _ []kernel.Bool) []kernel.F32 {
			xs := x.read(at)
			return []kernel.F32{products(xs, xs)}
		})[0]
	}
	scale := t.sum(squares).Div(b.F32(&p.Count)).Add(b.F32(&p.Eps)).Sqrt().Recip()
	r.write(put, func(j kernel.U32, xs []kernel.F32) []kernel.F32 {
		return affine(xs, gamma, nil, j, func(x kernel.F32) kernel.F32 { return x.Mul(scale) })
	})
})

// affine returns f of xs, unit j of a row, times gamma plus beta where these are not
// nil.
func affine(xs []kernel.F32, gamma, beta units, j kernel.U32, f func(x kernel.F32) kernel.F32) []kernel.F32 {
	ys := make([]kernel.F32, len(xs))
	for i, x := range xs {
		ys[i] = f(x)
	}
	if gamma != nil {
		for i, w := range gamma(j) {
			ys[i] = ys[i].Mul(w)
		}
	}
	if beta != nil {
		for i, w := range beta(j) {
			ys[i] = ys[i].Add(w)
		}
	}
	return ys
}

// weight declares operand i, or returns nil if it is absent.
func (s *rowSpec) weight(b *kernel.Builder, i int, name string) units {
	if s.Weights>>i&1 == 0 {
		return nil
	}
	return inputUnits(b, name, s.Type, s.Unit)
}
