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
	r, w := weighted(b, t, p, &s, x, gamma, beta)
	count := b.F32(&p.Count)
	var mean, squares kernel.F32
	switch {
	case s.Rest:
		mean, squares = r.moments(count)
	case s.Held:
		mean = t.sum(tree(only(r.held, r.there, kernel.F(0)))).Div(count)
		for i, x := range r.held {
			r.held[i] = x.Sub(mean)
		}
		ds := only(r.held, r.there, kernel.F(0))
		squares = t.sum(products(ds, ds))
	default:
		var off kernel.F32
		if s.Split {
			mean, squares, off = pieces.merge(t, r.pieces[0], r.pieces[1], count, b.F32(&p.Length), b.F32(&p.Tail))
		} else {
			mean, squares, off = momentsOf(&r.strip, s.Unit, x, b.U32(&p.Cols).Mul(kernel.U(uint32(s.Unit))))
		}
		mean, squares = mean.Add(off), squares.Sub(off.Mul(off.Mul(count)))
	}
	scale := squares.Div(count).Add(b.F32(&p.Eps)).Sqrt().Recip()
	r.write(put, func(k int, j kernel.U32, xs []kernel.F32) []kernel.F32 {
		return w.affine(xs, k, j, func(x kernel.F32) kernel.F32 {
			if !s.Held || s.Rest {
				x = x.Sub(mean)
			}
			return x.Mul(scale)
		})
	})
})

// moments returns the mean of a row of count elements, of which a part is kept, and
// the sum of the squares of the distances from it. A lane takes distances from the
// mean of what it keeps, so that nobody waits before all is read.
func (r *row) moments(count kernel.F32) (mean, squares kernel.F32) {
	share := count.Recip()
	scaled := make([]kernel.F32, len(r.held))
	for i, v := range r.held {
		scaled[i] = v.Mul(kernel.F(1 / float32(len(r.held))))
	}
	centre := tree(scaled)
	about := func(vs []kernel.F32) []kernel.F32 {
		ds, shares := make([]kernel.F32, len(vs)), make([]kernel.F32, len(vs))
		for i, v := range vs {
			ds[i], shares[i] = v.Sub(centre), share
		}
		return []kernel.F32{products(ds, ds), products(ds, shares)}
	}
	sums := r.rest.sums(r.unit, 2, func(at []kernel.U32, _ []kernel.Bool) []kernel.F32 {
		return about(r.x.read(at))
	})
	for i, v := range about(r.held) {
		sums[i] = sums[i].Add(v)
	}
	// The share of the row that this lane has.
	mine := r.rest.taken().Mul(kernel.U(uint32(r.unit))).Add(kernel.U(uint32(len(r.held)))).F32().Mul(share)
	mean = r.t.sum(centre.Fma(mine, sums[1]))
	d := centre.Sub(mean)
	squares = r.t.sum(d.Mul(d.Fma(mine, sums[1].Mul(kernel.F(2)))).Fma(count, sums[0]))
	return mean, squares
}

var rmsNorms = newMaker("rms_norm", func(b *kernel.Builder, p *rowParams, s rowSpec, e *epilogue) {
	t := newTeam(b, s.crew)
	x := inputUnits(b, "x", s.Type, s.Unit)
	gamma := s.weight(b, 1, "gamma")
	var pieces kernel.Buffer[kernel.F32]
	if s.Split {
		pieces = kernel.Input[kernel.F32](b, "pieces")
	}
	put := e.units(b, s.Type, s.Unit)
	r, w := weighted(b, t, p, &s, x, gamma, nil)
	squaresOf := func(at []kernel.U32, _ []kernel.Bool) []kernel.F32 {
		xs := x.read(at)
		return []kernel.F32{products(xs, xs)}
	}
	var squares kernel.F32
	switch {
	case s.Held:
		xs := only(r.held, r.there, kernel.F(0))
		squares = products(xs, xs)
		if s.Rest {
			squares = squares.Add(r.rest.sums(s.Unit, 1, squaresOf)[0])
		}
	case s.Split:
		squares = total(b, r.pieces[0].Add(t.lane), r.pieces[1], t.Team, func(acc kernel.F32, i kernel.U32) kernel.F32 {
			return acc.Add(pieces.At(i))
		})
	default:
		squares = r.sums(s.Unit, 1, squaresOf)[0]
	}
	scale := t.sum(squares).Div(b.F32(&p.Count)).Add(b.F32(&p.Eps)).Sqrt().Recip()
	r.write(put, func(k int, j kernel.U32, xs []kernel.F32) []kernel.F32 {
		return w.affine(xs, k, j, func(x kernel.F32) kernel.F32 { return x.Mul(scale) })
	})
})

// weights are those of a row: each gives unit j of them, which belongs to number k of
// the units that the lane keeps, or to none of them for -1.
type weights []func(k int, j kernel.U32) []kernel.F32

// weighted returns the row of a team and its weights. If these are to be read early,
// they are read before it, at places that do not depend on it, or those of a part behind
// the part.
func weighted(b *kernel.Builder, t *team, p *rowParams, s *rowSpec, x, gamma, beta units) (r *row, w weights) {
	if s.Split {
		r = newRow(b, t, p, s, x)
		return r, s.weights(b, t, p, r, gamma, beta)
	}
	w = s.weights(b, t, p, nil, gamma, beta)
	return newRow(b, t, p, s, x), w
}

// weights returns the weights gamma and beta of a row, of which those that are nil are
// nil. If they are to be read early, they are read now.
func (s *rowSpec) weights(b *kernel.Builder, t *team, p *rowParams, r *row, gamma, beta units) (ws weights) {
	var at []kernel.U32
	switch {
	case !s.Early || s.Each == 0:
	case s.Split:
		for _, i := range r.at {
			at = append(at, i.Sub(r.start))
		}
	default:
		st := &strip{t: t, first: kernel.U(0), last: b.U32(&p.Cols), Each: s.Each, filled: s.filled}
		st.each(s.Unit, func(places []kernel.U32, _ []kernel.Bool) { at = places })
	}
	for _, x := range []units{gamma, beta} {
		if x == nil {
			ws = append(ws, nil)
			continue
		}
		// Variables, as loads move to where their values are used.
		var kept []kernel.Var[kernel.F32]
		for _, v := range x.read(at) {
			kept = append(kept, kernel.NewVar(b, "weight", v))
		}
		ws = append(ws, func(k int, j kernel.U32) []kernel.F32 {
			if k < 0 || len(kept) == 0 {
				return x(j)
			}
			return values(kept[k*s.Unit:][:s.Unit])
		})
	}
	return ws
}

// affine returns f of xs, unit j of a row and number k of those that are kept, times
// gamma plus beta where there are these.
func (w weights) affine(xs []kernel.F32, k int, j kernel.U32, f func(x kernel.F32) kernel.F32) []kernel.F32 {
	ys := make([]kernel.F32, len(xs))
	for i, x := range xs {
		ys[i] = f(x)
	}
	for n, apply := range []func(y, v kernel.F32) kernel.F32{kernel.F32.Mul, kernel.F32.Add} {
		if w[n] == nil {
			continue
		}
		for i, v := range w[n](k, j) {
			ys[i] = apply(ys[i], v)
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
