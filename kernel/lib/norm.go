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
	x := s.input(b, "x")
	ws := s.weights(b, p, "gamma", "beta")
	var pieces momentPieces
	if s.Split {
		pieces = inputMoments(b)
		b.Roomy() // of a part that is read before the pieces are
	}
	put := s.output(b, e)
	r, w := weighted(b, t, p, &s, x, ws)
	count := b.F32(&p.Count)
	var mean, squares kernel.F32
	switch {
	case s.Rest:
		mean, squares = r.moments(count)
	case s.Held:
		mean = t.sum(tree(r.only(r.held))).Div(count)
		for i, x := range r.held {
			r.held[i] = x.Sub(mean)
		}
		ds := r.only(r.held)
		squares = t.sum(products(ds, ds))
	default:
		var off kernel.F32
		if s.Split {
			mean, squares, off = pieces.merge(t, r.pieces[0], r.pieces[1], count, b.F32(&p.Length), b.F32(&p.Tail))
		} else {
			mean, squares, off = momentsOf(&r.strip, s.Unit, x.units, b.U32(&p.Cols).Mul(kernel.U(uint32(s.Unit))))
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
	share, held := count.Recip(), r.held[:len(r.at)*r.unit]
	scaled := make([]kernel.F32, len(held))
	for i, v := range held {
		scaled[i] = v.Mul(kernel.F(1 / float32(len(held))))
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
		return about(r.units.read(at))
	})
	for i, v := range about(held) {
		sums[i] = sums[i].Add(v)
	}
	taken := r.rest.taken().Mul(kernel.U(uint32(r.unit))).Add(kernel.U(uint32(len(held))))
	if e := r.edge; e != nil {
		for i, v := range about(r.held[len(held):]) {
			sums[i] = sums[i].Add(kernel.Select(e.is, v, kernel.F(0)))
		}
		taken = taken.Add(kernel.Select(e.is, kernel.U(1), kernel.U(0)))
	}
	// The share of the row that this lane has.
	mine := taken.F32().Mul(share)
	mean = r.t.sum(centre.Fma(mine, sums[1]))
	d := centre.Sub(mean)
	squares = r.t.sum(d.Mul(d.Fma(mine, sums[1].Mul(kernel.F(2)))).Fma(count, sums[0]))
	return mean, squares
}

var rmsNorms = newMaker("rms_norm", func(b *kernel.Builder, p *rowParams, s rowSpec, e *epilogue) {
	t := newTeam(b, s.crew)
	x := s.input(b, "x")
	ws := s.weights(b, p, "gamma")
	var pieces kernel.Buffer[kernel.F32]
	if s.Split {
		pieces = kernel.Input[kernel.F32](b, "pieces")
	}
	put := s.output(b, e)
	r, w := weighted(b, t, p, &s, x, ws)
	squaresOf := func(at []kernel.U32, _ []kernel.Bool) []kernel.F32 {
		xs := r.units.read(at)
		return []kernel.F32{products(xs, xs)}
	}
	var squares kernel.F32
	switch {
	case s.Held:
		xs := r.only(r.held)
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
// the units that the lane keeps, or to none of them for -1. Behind the units that are
// kept stands the lane's element of an edge.
type weights []func(k int, j kernel.U32) []kernel.F32

// weights declares the weights of those names, operands 1 and 2: nil for one that is
// absent.
func (s *rowSpec) weights(b *kernel.Builder, p *rowParams, names ...string) []*edged {
	var laid units
	var n int // weights that are laid out
	ws := make([]*edged, len(names))
	for i, name := range names {
		switch {
		case s.Weights>>(i+1)&1 == 0:
		case s.Shifted:
			nth := n
			n++
			ws[i] = &edged{single: input(b, name, s.Type), shifted: func(by kernel.U32) units {
				return laid.shiftedBy(by, b.U32(&p.Cols), nth)
			}}
		default:
			w := s.input(b, name)
			ws[i] = &w
		}
	}
	if n > 0 {
		laid = inputUnits(b, "shifted", s.Type, s.Unit)
	}
	return ws
}

// weighted returns the row of a team and its weights. If these are to be read early,
// they are read before it, at places that do not depend on it but for its edges, or those
// of a part behind the part.
func weighted(b *kernel.Builder, t *team, p *rowParams, s *rowSpec, x edged, ws []*edged) (r *row, w weights) {
	switch {
	case s.Split:
		r = newRow(b, t, p, s, x)
		w = s.read(b, t, p, r, ws)
	case s.Edges:
		r = placeRow(b, t, p, s, x)
		w = s.read(b, t, p, r, ws)
		r.hold()
	default:
		w = s.read(b, t, p, nil, ws)
		r = newRow(b, t, p, s, x)
	}
	return r, w
}

// read returns the weights of a row. If they are to be read early, they are read now.
func (s *rowSpec) read(b *kernel.Builder, t *team, p *rowParams, r *row, in []*edged) (ws weights) {
	var at []kernel.U32
	switch {
	case !s.Early || s.Each == 0:
	case s.Split:
		for _, i := range r.at {
			at = append(at, i.Sub(r.start))
		}
	default:
		st := &strip{t: t, first: kernel.U(0), last: b.U32(&p.Cols), Each: s.Each, filled: s.filled}
		if s.Edges {
			st.last = r.last.Sub(r.first)
		}
		st.each(s.Unit, func(places []kernel.U32, _ []kernel.Bool) { at = places })
	}
	for _, w := range in {
		if w == nil {
			ws = append(ws, nil)
			continue
		}
		x := w.units
		if s.Edges {
			x = w.shifted(r.first.Mul(kernel.U(4)).Sub(r.start))
		}
		// Variables, as loads move to where their values are used.
		var kept []kernel.Var[kernel.F32]
		for _, v := range x.read(at) {
			kept = append(kept, kernel.NewVar(b, "weight", v))
		}
		if s.Edges && s.Early {
			kept = append(kept, kernel.NewVar(b, "weight", w.single(r.edge.at.Sub(r.start))))
		}
		ws = append(ws, func(k int, j kernel.U32) []kernel.F32 {
			switch {
			case s.Edges && k == s.Each && len(kept) == 0:
				return []kernel.F32{w.single(j)}
			case s.Edges && k == s.Each:
				return values(kept[len(kept)-1:])
			case k < 0 || len(kept) == 0:
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
	for n, apply := range []func(y, v kernel.F32) kernel.F32{kernel.F32.Mul, kernel.F32.Add}[:len(w)] {
		if w[n] == nil {
			continue
		}
		for i, v := range w[n](k, j) {
			ys[i] = apply(ys[i], v)
		}
	}
	return ys
}
